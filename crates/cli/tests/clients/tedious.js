// tedious
const fs = require('fs');
const { Connection, Request, TYPES } = require('tedious');
const [port, password, mode, authority, folder] = process.argv.slice(2);

function connect(given) {
  const encrypt = mode === 'strict' ? 'strict' : mode === 'tls';
  const options = {
    port: Number(port), encrypt, trustServerCertificate: mode !== 'strict', requestTimeout: 2000,
    rowCollectionOnRequestCompletion: true, serverName: 'localhost',
    cryptoCredentialsDetails: { ca: fs.readFileSync(authority) },
  };
  return new Promise((resolve, reject) => {
    const made = new Connection({ server: '127.0.0.1', options,
      authentication: { type: 'default', options: { userName: 'tester', password: given } } });
    made.on('connect', (error) => (error ? reject(error) : resolve(made)));
    made.on('error', () => {});
    made.connect();
  });
}

(async () => {
  const connection = await connect(password);
  let told = 0;
  connection.on('infoMessage', (message) => { if (message.number === 3211) told += 1; });
  const run = (text, prepare, way = 'execSql') => new Promise((resolve, reject) => {
    const out = {};
    const sets = [];
    const request = new Request(text, (error, count, rows) => {
      if (error) reject(error);
      else resolve({ rows: rows.map((row) => row.map((cell) => cell.value)), out });
    });
    request.on('returnValue', (name, value) => { out[name] = value; });
    if (prepare) prepare(request);
    connection[way](request);
  });
  console.log('one', (await run('SELECT 1')).rows[0][0]);
  const pair = await run('SELECT @a, @b', (request) => {
    request.addParameter('a', TYPES.NVarChar, 'ä€😀');
    request.addParameter('b', TYPES.Int, 7);
  });
  console.log('unicode', ...pair.rows[0]);
  const many = await run("WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT i, N'ä' AS t FROM n OPTION (MAXRECURSION 0)", (request) => request.setTimeout(60000));
  console.log('rows', many.rows.length, many.rows.reduce((sum, row) => sum + row[0], 0));
  const columns = [...Array(150).keys()].map((i) => `CAST(NULL AS int) AS c${i}, ${i} AS d${i}`);
  const wide = (await run('SELECT ' + columns.join(', '))).rows[0];
  console.log('wide', wide.length, wide.reduce((sum, value) => sum + (value || 0), 0));
  const two = await run("SELECT 1; SELECT N'two'", null, 'execSqlBatch');
  console.log('sets', ...two.rows.flat());
  const doubled = await run('SET @o = @i * 2', (request) => {
    request.addParameter('i', TYPES.Int, 21);
    request.addOutputParameter('o', TYPES.Int);
  });
  console.log('output', doubled.out.o);
  await run('SELECT * FROM nosuch').catch((error) => console.log('error', error.number));
  await new Promise((resolve) => connection.beginTransaction(resolve));
  console.log('transaction', (await run('SELECT @@TRANCOUNT')).rows[0][0]);
  await new Promise((resolve) => connection.rollbackTransaction(resolve));
  await run(`BACKUP DATABASE app TO DISK = '${folder}/tedious-${mode}.bak' WITH INIT, STATS = 10`, null, 'execSqlBatch');
  const sets = await run("SELECT COUNT(*) FROM msdb.dbo.backupset WHERE database_name = 'app' AND type = 'D'");
  console.log('sets of backups', sets.rows[0][0] > 0 && told >= 1 ? 'True' : told);
  await connect('wrong').catch((error) => console.log('wrong', /Login failed/.test(error.message) ? 18456 : error.message));
  const cancelled = run("WAITFOR DELAY '00:10:00'", (request) => request.setTimeout(60000), 'execSqlBatch');
  setTimeout(() => connection.cancel(), 300);
  await cancelled.catch((error) => console.log('cancelled', error.code));
  console.log('after', (await run('SELECT 42')).rows[0][0]);
  for (const name of fs.readdirSync(folder).filter((file) => file.endsWith('.sql')).sort()) {
    const batches = fs.readFileSync(`${folder}/${name}`, 'utf8').split('\nGO\n').filter((batch) => batch.trim());
    let found;
    for (const batch of batches) found = await run(batch, (request) => request.setTimeout(60000), 'execSqlBatch');
    if (name === 'history.sql') for (const row of found.rows) console.log(row.map((value) => value ?? 'NULL').join('|'));
  }
  connection.close();
})().catch((error) => { console.log('failed', error); process.exit(1); });

"""Compares Parquet files with the CSV files and the SQLite file of the same tables, value by value.

Usage: parquet.py FOLDER_OF_PARQUET FOLDER_OF_CSV SQLITE_FILE. Exit code 77: there is no pyarrow.
"""

import csv
import datetime
import decimal
import pathlib
import sqlite3
import sys

try:
    import pyarrow.parquet
except ImportError:
    sys.exit(77)

csv.field_size_limit(1 << 30)


def same(value, text):
    if value is None:
        return text == ""
    if isinstance(value, bool):
        return text == str(int(value))
    if isinstance(value, decimal.Decimal):
        return text == format(value, "f")
    if isinstance(value, float):
        return float(text) == value
    if isinstance(value, datetime.datetime):
        whole, _, fraction = text.partition(".")
        return value.strftime("%H:%M:%S") == whole[11:] and value.date().isoformat() == whole[
            :10
        ] and value.microsecond == int(fraction.ljust(6, "0"))
    if isinstance(value, (bytes, bytearray)):
        return text == "0x" + value.hex().upper()
    return str(value).upper() == text.upper() if type(value).__name__ == "UUID" else str(value) == text


def same_in_sqlite(value, stored):
    if value is None or stored is None:
        return value is stored
    if isinstance(value, decimal.Decimal) and isinstance(stored, float):
        return float(value) == stored
    if isinstance(value, decimal.Decimal):
        return value == decimal.Decimal(stored)
    if isinstance(value, (bool, int, float, bytes)):
        return value == stored
    return same(value, stored)


def main(parquet_folder, csv_folder, sqlite_file):
    rows, types = 0, set()
    database = sqlite3.connect(sqlite_file)
    for path in sorted(pathlib.Path(parquet_folder).glob("*.parquet")):
        table = pyarrow.parquet.read_table(path)
        types.update(str(field.type).split("(")[0].split("[")[0] for field in table.schema)
        columns = [column.to_pylist() for column in table.columns]
        with open(pathlib.Path(csv_folder) / (path.stem + ".csv"), newline="", encoding="utf-8") as file:
            lines = csv.reader(file)
            names = next(lines)
            assert names == table.schema.names, (path, names)
            count = 0
            for line in lines:
                for name, column, text in zip(names, columns, line, strict=True):
                    assert same(column[count], text), (path, name, count, column[count], text)
                count += 1
            assert count == table.num_rows, (path, count, table.num_rows)
        # The rows are in the order in which they were written.
        stored = database.execute(f'SELECT * FROM "{path.stem.removeprefix("dbo.")}" ORDER BY rowid').fetchall()
        for index, (values, line) in enumerate(zip(zip(*columns), stored, strict=True)):
            for name, value, found in zip(names, values, line, strict=True):
                assert same_in_sqlite(value, found), (path, name, index, value, found)
        rows += count
    print(rows, " ".join(sorted(types)))


main(*sys.argv[1:])

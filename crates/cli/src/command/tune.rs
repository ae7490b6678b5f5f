//! `windlass tune`

use clap::Parser as _;
use windlass_instance::tsql::print;
use windlass_tune::advice::{self, Advice, Recommendation, Request, Statements};

use super::measuring::{Subject, announce, check_files, publish, subject};
use super::{Outcome, absolute, backup};
use crate::args::{Arguments, Command, Common, TuneArguments};
use crate::output::error_line;

/// Runs the command.
pub(crate) fn run(arguments: &TuneArguments, common: &Common) -> Outcome {
    if let Err(outcome) = check_files(&arguments.files) {
        return outcome;
    }
    let is_as_is = arguments.content.as_is;
    let Some(subject) = subject(&arguments.database, is_as_is, &arguments.to, common) else {
        return Outcome::Failed;
    };
    let request = Request {
        goal: arguments.goal,
        time: arguments.time,
        cache: arguments.cache.cache.into(),
        without: subject.without.clone(),
        targets: subject.targets.clone(),
    };
    let found = advice::advise(
        &subject.database,
        &request,
        &subject.cancel,
        &announce(common),
    );
    let published = found.map_err(|error| error.to_string()).and_then(|advice| {
        let statements = statements(&advice, &subject, is_as_is, common)?;
        Ok(publish(
            &advice.outcome(&statements),
            &arguments.files,
            common,
        ))
    });
    published.unwrap_or_else(|reason| {
        error_line(&reason);
        Outcome::Failed
    })
}

/// The recommendation as a command line and as the equivalent statement, which is made by parsing the
/// command line, so that both agree.
fn statements(
    advice: &Advice,
    subject: &Subject,
    is_as_is: bool,
    common: &Common,
) -> Result<Statements, String> {
    let mut words = command_line(&advice.recommendation, &subject.argument, common);
    if is_as_is {
        words.push("--as-is".to_owned());
    }
    let parsed = Arguments::try_parse_from(&words).map_err(|error| error.to_string())?;
    let Command::Backup(backup) = parsed.command else {
        return Err(format!("'{}' is not a backup", words.join(" ")));
    };
    let options = backup::options(&backup);
    Ok(Statements {
        tsql: format!("{};", print::backup(subject.database.name(), &options)),
        command: shell_words::join(words),
    })
}

fn command_line(recommendation: &Recommendation, database: &str, common: &Common) -> Vec<String> {
    let mut words = ["windlass", "backup", database].map(str::to_owned).to_vec();
    let mut option = |name: &str, value: String| words.extend([name.to_owned(), value]);
    if let Some(instance) = &common.instance {
        option("--instance", absolute(instance));
    }
    for device in &recommendation.devices {
        option("--to", absolute(device));
    }
    let compression = recommendation.compression.to_string().to_ascii_lowercase();
    option("--compress", compression);
    if let Some(threads) = recommendation.threads {
        option("--threads", threads.to_string());
    }
    if let Some(bytes) = recommendation.transfer_bytes {
        option("--max-transfer-size", bytes.to_string());
    }
    words
}

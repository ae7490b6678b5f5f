//! Measures every codec on the pages of databases, and wimlib if its library is present.
//!
//! `cargo run --release -p windlass-bench --bin codec -- FILE...` takes pieces spread evenly over each
//! FILE (or all files of a folder), compresses and expands each piece with each codec in turn, so that
//! temporary slowness of the machine affects all of them alike, and repeats that; the tables show
//! medians. Times are CPU times of one thread. `--short` takes two minutes.

#![expect(clippy::print_stdout, reason = "the table is what the program is for")]

mod contender;
mod floors;
mod sample;
mod wimlib;

use std::path::PathBuf;

use clap::Parser;
use windlass_accelerator::{ISAL_LEVEL_MAX, Isal};
use windlass_bench::median;
use windlass_codec::{Compression, Filter};

use crate::contender::{Contender, Ours, Pass, Room};
use crate::sample::{PIECE_BYTES, Sample};
use crate::wimlib::{Wimlib, WimlibToOurs};

#[derive(Debug, Parser)]
#[command(about = "Measures every codec on the pages of a database")]
struct Arguments {
    /// Databases, other files, or folders of files; each gets tables of its own
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How much of each to take, in MB
    #[arg(long, default_value_t = 256)]
    sample_mb: usize,
    /// How often each codec runs; the median counts
    #[arg(long, default_value_t = 3)]
    repetitions: usize,
    /// 96 MB of each, and only the product's own codecs
    #[arg(long, conflicts_with = "sample_mb")]
    short: bool,
    /// Only codecs whose name contains this text
    #[arg(long)]
    only: Option<String>,
    /// Frame size in KB instead of each codec's own
    #[arg(long)]
    frame_kb: Option<usize>,
}

/// The medians of one codec.
struct Row {
    name: String,
    frame_bytes: usize,
    encode_rate: f64,
    decode_rate: f64,
    ratio: f64,
}

/// Megabytes of each file in the short form.
const SHORT_MB: usize = 96;

fn main() -> Result<(), anyhow::Error> {
    let arguments = Arguments::parse();
    let sample_mb = match arguments.short {
        true => SHORT_MB,
        false => arguments.sample_mb,
    };
    let mut contenders = contenders(&arguments)?;
    for file in &arguments.files {
        let sample = Sample::read(file, sample_mb << 20)?;
        let rows = measure(&mut contenders, &sample, arguments.repetitions)?;
        println!(
            "{}: {}, {} MB, {} repetitions, MB of 2^20 bytes per second of one core\n",
            sample.name,
            if sample.is_utf_16 {
                "UTF-16"
            } else {
                "not UTF-16"
            },
            sample.bytes() >> 20,
            arguments.repetitions
        );
        print_table(&rows);
        floors::print(&rows, sample.is_utf_16);
        println!();
    }
    Ok(())
}

fn measure(
    contenders: &mut [Box<dyn Contender>],
    sample: &Sample,
    repetitions: usize,
) -> Result<Vec<Row>, anyhow::Error> {
    let mut room = Room::new(PIECE_BYTES);
    let mut passes: Vec<Vec<Pass>> = contenders.iter().map(|_| Vec::new()).collect();
    for _ in 0..repetitions {
        let mut repetition = vec![Pass::default(); contenders.len()];
        for piece in &sample.pieces {
            for (contender, pass) in contenders.iter_mut().zip(&mut repetition) {
                contender::run(contender.as_mut(), piece, &mut room, pass)?;
            }
        }
        for (passes, pass) in passes.iter_mut().zip(repetition) {
            passes.push(pass);
        }
    }
    let measured = contenders.iter().zip(&passes);
    Ok(measured
        .map(|(contender, passes)| row(contender.as_ref(), passes))
        .collect())
}

fn contenders(arguments: &Arguments) -> Result<Vec<Box<dyn Contender>>, anyhow::Error> {
    let mut contenders: Vec<Box<dyn Contender>> = Vec::new();
    for compression in &Compression::ALL[1..] {
        let frame_bytes = arguments
            .frame_kb
            .map_or(compression.frame_bytes(), |kb| kb << 10);
        contenders.push(Box::new(Ours::new(*compression, frame_bytes)?));
        if Filter::NARROW.is_taken_by(compression.algorithm) {
            let unfiltered = Ours::new(*compression, frame_bytes)?.unfiltered();
            contenders.push(Box::new(unfiltered));
        }
    }
    if !arguments.short {
        others(&mut contenders)?;
    }
    if let Some(only) = &arguments.only {
        contenders.retain(|contender| contender.name().contains(only.as_str()));
    }
    Ok(contenders)
}

/// Codecs to compare with: each level of ISA-L, and wimlib.
fn others(contenders: &mut Vec<Box<dyn Contender>>) -> Result<(), anyhow::Error> {
    for level in 0..=ISAL_LEVEL_MAX {
        let frame_bytes = Compression::QAT_DEFLATE.frame_bytes();
        match Isal::built_in(level).or_else(|_| Isal::load_level(level)) {
            Ok(isal) => {
                let name = format!("ISA-L level {level}");
                let codec = || Ours::provided(name.clone(), frame_bytes, &isal);
                contenders.push(Box::new(codec()?));
                if level == 1 {
                    contenders.push(Box::new(codec()?.unfiltered()));
                }
            }
            Err(error) => println!("SKIPPED: ISA-L, the faster maker of QAT_DEFLATE: {error}\n"),
        }
    }
    match Wimlib::new(20) {
        Ok(wimlib) => {
            contenders.push(Box::new(wimlib));
            contenders.push(Box::new(WimlibToOurs::new(20)?));
        }
        Err(error) => println!("SKIPPED: wimlib, the peer of MS_XPRESS: {error}\n"),
    }
    Ok(())
}

fn row(contender: &dyn Contender, passes: &[Pass]) -> Row {
    Row {
        name: contender.name(),
        frame_bytes: contender.frame_bytes(),
        encode_rate: median(passes.iter().map(Pass::encode_rate)),
        decode_rate: median(passes.iter().map(Pass::decode_rate)),
        ratio: median(passes.iter().map(Pass::ratio)),
    }
}

fn print_table(rows: &[Row]) {
    println!("| codec | frame | encode MB/s | decode MB/s | ratio |");
    println!("|---|---|---|---|---|");
    for row in rows {
        println!(
            "| {} | {} KB | {:.0} | {:.0} | {:.3} |",
            row.name,
            row.frame_bytes >> 10,
            row.encode_rate,
            row.decode_rate,
            row.ratio
        );
    }
}

//! The layout of a SQL Server backup as one HTML page.

use std::path::Path;

use windlass_bak::page::PAGE_BYTES;
use windlass_bak::{Census, FileCensus, ObjectCensus, PartKind, SetListing, page_type_name};
use windlass_report::{
    BarGroup, Bars, Cell, Chart, ChartKind, Column, Fact, Figure, Map, MapPart, Report, Section,
    Spread, Table, TableOf, number,
};

/// Maximum number of objects in a chart, and in a table.
const OBJECTS_DRAWN: usize = 15;
const OBJECTS_LISTED: usize = 500;

const KB: f64 = 1024.0;

/// The page.
pub(super) fn of(census: &Census, file: &Path) -> Report {
    let name = file.file_name().unwrap_or(file.as_os_str());
    let mut sections = vec![map(census)];
    for set in &census.listing.sets {
        sections.extend(objects(census, set));
        sections.push(pages(census, set));
    }
    Report {
        title: format!("SQL Server backup {}", name.display()),
        subtitle: super::summary(census).swap_remove(0),
        figures: figures(census),
        facts: facts(census, file),
        sections,
        notes: notes(census),
    }
}

fn figures(census: &Census) -> Vec<Figure> {
    let walked = &census.listing.walked;
    let figure = |label: &str, value: String, detail: String| Figure {
        label: label.to_owned(),
        value,
        detail,
    };
    let sets = &census.listing.sets;
    let complete = sets.iter().filter(|set| set.is_complete).count();
    vec![
        figure(
            "size",
            format!("{} KB", number(walked.file_bytes as f64 / KB, 0)),
            match walked.records {
                0 => "not compressed".to_owned(),
                records => format!(
                    "{} KB in {records} compressed records",
                    number(walked.stream_bytes as f64 / KB, 0)
                ),
            },
        ),
        figure(
            "backup sets",
            sets.len().to_string(),
            format!("{complete} complete"),
        ),
        figure(
            "damage",
            census.listing.findings.len().to_string(),
            "in headers and records; verify checks the pages".to_owned(),
        ),
    ]
}

fn facts(census: &Census, file: &Path) -> Vec<Fact> {
    let mut facts = vec![Fact::new("file", file.display().to_string())];
    if let Some(media) = &census.listing.media {
        let family = format!("{} of {}", media.family_number, media.family_count);
        facts.extend([
            Fact::new("media set", media.media_set.to_string()),
            Fact::new("media family", family),
            Fact::new("block size", format!("{} bytes", media.block_bytes)),
            Fact::new("written by", media.software.clone()),
        ]);
    }
    for set in &census.listing.sets {
        let position = format!("set {}", set.header.position);
        facts.push(Fact::new(position, super::set_line(set)));
    }
    facts
}

fn notes(census: &Census) -> Vec<String> {
    let mut notes: Vec<String> = census
        .listing
        .findings
        .iter()
        .map(|finding| format!("Damage: {finding}"))
        .collect();
    notes.push(
        "The map shows for each spot what takes most of it. In a compressed backup, this is the position of the \
         compressed data."
            .to_owned(),
    );
    notes
}

/// What lies where in the file.
fn map(census: &Census) -> Section {
    let totals = census.picture.totals();
    let part = |(kind, bytes): (PartKind, u64)| MapPart {
        kind: kind as usize,
        bytes,
    };
    let names = PartKind::ALL.map(|kind| kind.name().to_owned());
    let described: Vec<String> = totals
        .iter()
        .filter(|(_, bytes)| *bytes > 0)
        .map(|(kind, bytes)| format!("{} {bytes} bytes", kind.name()))
        .collect();
    let all = census.listing.walked.file_bytes.max(1) as f64;
    let table = TableOf::default()
        .column(
            Column::text("part", "Part"),
            |(kind, _): &(PartKind, u64)| kind.name(),
        )
        .column(Column::number("bytes", "Size", "KB", 1), |(_, bytes)| {
            *bytes as f64 / KB
        })
        .column(
            Column::number("share", "Share", "%", 1),
            move |(_, bytes)| *bytes as f64 * 100.0 / all,
        )
        .of("parts", "Parts of the file", totals);
    Section {
        heading: "Where in the file what lies".to_owned(),
        charts: vec![Chart {
            title: "The file from its beginning to its end".to_owned(),
            description: described.join(", "),
            kind: ChartKind::Map(Map {
                kinds: names.to_vec(),
                parts: census.picture.parts().into_iter().map(part).collect(),
            }),
        }],
        tables: vec![table],
        ..Section::default()
    }
}

/// The objects of a set, if its system tables can be read.
fn objects(census: &Census, set: &SetListing) -> Option<Section> {
    let objects = census.objects.get(&set.header.position)?;
    let group = |object: &ObjectCensus| BarGroup {
        label: super::object_name(object),
        values: [object.row_pages, object.index_pages, object.long_pages]
            .map(|pages| Some(Spread::exact(kilobytes(pages))))
            .to_vec(),
    };
    let drawn = objects.iter().take(OBJECTS_DRAWN).map(group).collect();
    let mut text = Vec::new();
    if objects.len() > OBJECTS_LISTED {
        text.push(format!(
            "The {OBJECTS_LISTED} largest of {} objects.",
            objects.len()
        ));
    }
    Some(Section {
        heading: format!("Objects of set {}", set.header.position),
        text,
        charts: vec![Chart {
            title: "The largest objects".to_owned(),
            description: "The size of the rows, indexes and long values of the largest objects"
                .to_owned(),
            kind: ChartKind::Bars(Bars {
                unit: "KB".to_owned(),
                decimals: 0,
                series: ["rows", "indexes", "long values"]
                    .map(str::to_owned)
                    .to_vec(),
                groups: drawn,
                marks: Vec::new(),
            }),
        }],
        tables: vec![objects_table(objects)],
        ..Section::default()
    })
}

fn objects_table(objects: &[ObjectCensus]) -> Table {
    let kilobytes_of = |pages: u64| Cell::Number(kilobytes(pages));
    TableOf::default()
        .column(Column::text("name", "Object"), |object: &&ObjectCensus| {
            super::object_name(object)
        })
        .column(Column::text("kind", "Type"), |object| {
            object.owner.kind.clone()
        })
        .column(Column::number("object", "Number", "", 0), |object| {
            f64::from(object.owner.object.cast_signed())
        })
        .column(Column::number("rows", "Rows", "KB", 0), move |object| {
            kilobytes_of(object.row_pages)
        })
        .column(
            Column::number("indexes", "Indexes", "KB", 0),
            move |object| kilobytes_of(object.index_pages),
        )
        .column(
            Column::number("long", "Long values", "KB", 0),
            move |object| kilobytes_of(object.long_pages),
        )
        .column(Column::number("all", "Together", "KB", 0), move |object| {
            kilobytes_of(object.pages())
        })
        .of(
            "objects",
            "Size of each object",
            objects.iter().take(OBJECTS_LISTED),
        )
}

/// The types of the pages of each file.
fn pages(census: &Census, set: &SetListing) -> Section {
    let position = set.header.position;
    let files: Vec<(u16, &FileCensus)> = census
        .files
        .range((position, 0)..=(position, u16::MAX))
        .map(|((_, id), file)| (*id, file))
        .collect();
    let rows = files.iter().flat_map(|(id, file)| {
        let never = (file.unformatted > 0).then_some((*id, "never formatted", file.unformatted));
        let types = file.types.iter();
        let types = types.map(|(kind, pages)| (*id, page_type_name(*kind), *pages));
        types.chain(never).collect::<Vec<_>>()
    });
    let table = TableOf::default()
        .column(
            Column::number("file", "File", "", 0),
            |row: &(u16, &str, u64)| f64::from(row.0),
        )
        .column(Column::text("type", "Page type"), |row| row.1)
        .column(Column::number("pages", "Pages", "", 0), |row| row.2 as f64)
        .column(Column::number("size", "Size", "KB", 0), |row| {
            kilobytes(row.2)
        })
        .of("pages", "Pages by type", rows);
    Section {
        heading: format!("Pages of set {position}"),
        tables: vec![table],
        ..Section::default()
    }
}

fn kilobytes(pages: u64) -> f64 {
    (pages * PAGE_BYTES as u64) as f64 / KB
}

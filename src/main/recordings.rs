//! What is made of recordings: a part, a card, a report.

use super::keep_rights;
use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use vnettop::app::run::{CardError, Destination};
use vnettop::convert::ConvertedTo;
use vnettop::record::StoredIn;
use vnettop::{app, cli, record, rights, term};

/// The recording that is named, or that of the program; then it says so, because somebody may have forgotten the name.
fn stored(named: Option<&PathBuf>) -> StoredIn {
    named.map_or_else(
        || {
            term::say("no recording is named: this is of the built-in one");
            StoredIn::Program
        },
        StoredIn::from,
    )
}

/// A part of a recording as a file of its own.
pub fn cut(asked: &cli::AskedCut) -> Result<ExitCode, Box<dyn Error>> {
    keep_rights(rights::Work::Replaying);
    let missing = record::cut(&stored(asked.recording.as_ref()), asked.part.from, asked.part.to, &asked.output)?;
    missing.iter().for_each(term::say);
    Ok(ExitCode::from(u8::from(missing.is_some())))
}

/// A recording for other programs.
pub fn convert(asked: &cli::AskedConversion) -> Result<ExitCode, Box<dyn Error>> {
    keep_rights(rights::Work::Replaying);
    let missing = app::convert::convert(&app::convert::AskedFile {
        recording: &stored(asked.recording.as_ref()),
        host: asked.of.as_deref(),
        from: asked.part.from,
        to: asked.part.to,
        format: match asked.table {
            _ if asked.folded => ConvertedTo::Stacks,
            Some(table) => ConvertedTo::Table(table),
            None => ConvertedTo::Perfetto,
        },
        output: Some(&*asked.output).filter(|output| output.as_os_str() != "-"),
    })?;
    missing.iter().for_each(term::say);
    Ok(ExitCode::from(u8::from(missing.is_some())))
}

/// The card of a recording.
pub fn card(asked: &cli::AskedCard) -> Result<ExitCode, Box<dyn Error>> {
    keep_rights(rights::Work::Replaying);
    let text = app::run::card(&stored(asked.recording.as_ref()), card_format(asked.format))?;
    let destination = asked.card.as_deref().map(|path| Destination::open("card", path, None)).transpose()?;
    write_card("card", &text, destination, &mut io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

/// How a card is written.
pub fn card_format(format: cli::CardFormat) -> app::run::Format {
    match format {
        cli::CardFormat::Text => app::run::Format::Text,
        cli::CardFormat::Markdown => app::run::Format::Markdown,
        cli::CardFormat::Json => app::run::Format::Json,
    }
}

/// Into its file, or to somebody who reads.
pub fn write_card(
    what: &'static str,
    text: &str,
    destination: Option<Destination>,
    otherwise: &mut dyn Write,
) -> Result<(), CardError> {
    match destination {
        Some(destination) => destination.write(text),
        None => match otherwise.write_all(text.as_bytes()).and_then(|()| otherwise.flush()) {
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| CardError::Stream(what, error)),
        },
    }
}

/// A report of recordings, into a file or on standard output.
pub fn report(asked: &cli::AskedReport) -> Result<ExitCode, Box<dyn Error>> {
    keep_rights(rights::Work::Replaying);
    // Before a long recording is read: whether its report can be written.
    let output = asked.output.as_deref();
    let destination = output.map(|path| Destination::create_new("report", path)).transpose()?;
    let options = app::report::ReportOptions { anonymised: asked.anonymise };
    let recordings = match &*asked.recordings {
        [] => vec![stored(None)],
        named => named.iter().map(StoredIn::from).collect(),
    };
    let text = app::report::report(&recordings, asked.format, options)?;
    write_card("report", &text, destination, &mut io::stdout())?;
    Ok(ExitCode::SUCCESS)
}

//! Comma-separated values: quoted as RFC 4180 says, a line feed after each row, nothing where a value is not known.

use std::io::{self, Write};

/// What a spreadsheet takes for the beginning of a formula, or skips before one.
const FORMULA: [char; 6] = ['=', '+', '-', '@', '\t', '\r'];

/// Writes rows.
#[derive(Debug)]
pub struct CsvWriter<W> {
    out: W,
    row: String,
    is_first: bool,
}

impl<W: Write> CsvWriter<W> {
    /// A table with these columns.
    pub fn new(out: W, columns: &[&str]) -> io::Result<Self> {
        let mut table = Self { out, row: String::new(), is_first: true };
        for column in columns {
            table.plain(column);
        }
        table.end_row()?;
        Ok(table)
    }

    /// A text that comes from outside. Where a spreadsheet would take it for a formula an apostrophe comes first, which makes it text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.comma();
        let is_formula = text.starts_with(FORMULA);
        let is_quoted = is_formula || text.contains(['"', ',', '\n', '\r']);
        if !is_quoted {
            self.row.push_str(text);
            return self;
        }
        self.row.push('"');
        if is_formula {
            self.row.push('\'');
        }
        for one in text.chars() {
            if one == '"' {
                self.row.push('"');
            }
            self.row.push(one);
        }
        self.row.push('"');
        self
    }

    /// A word of ours.
    pub fn plain(&mut self, word: &str) -> &mut Self {
        self.comma();
        self.row.push_str(word);
        self
    }

    /// A whole number; none where it is not known.
    pub fn whole(&mut self, value: impl Into<Option<u64>>) -> &mut Self {
        let value: Option<u64> = value.into();
        self.plain(&value.map_or_else(String::new, |value| value.to_string()))
    }

    /// A number, as short as it is exact; none where it is not known.
    pub fn real(&mut self, value: impl Into<Option<f64>>) -> &mut Self {
        let value: Option<f64> = value.into();
        self.plain(&value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string()))
    }

    /// The row is complete.
    pub fn end_row(&mut self) -> io::Result<()> {
        self.row.push('\n');
        self.out.write_all(self.row.as_bytes())?;
        self.row.clear();
        self.is_first = true;
        Ok(())
    }

    /// Hands over what was written to where it goes.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn comma(&mut self) {
        if !std::mem::replace(&mut self.is_first, false) {
            self.row.push(',');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_one_cell_and_no_formula() {
        let mut out = Vec::new();
        let mut table = CsvWriter::new(&mut out, &["name", "n"]).expect("memory");
        for name in ["eth0", "a,b", "a\"b", "a\nb", "=cmd|' /C calc'!A0", "-1+1", "@sum", "+x", "\tx", ""] {
            table.text(name).whole(None).end_row().expect("memory");
        }
        table.text("x").real(f64::NAN).end_row().expect("memory");
        table.text("x").real(35e9).end_row().expect("memory");
        let expected = "name,n\neth0,\n\"a,b\",\n\"a\"\"b\",\n\"a\nb\",\n\"'=cmd|' /C calc'!A0\",\n\"'-1+1\",\n\"'@sum\",\n\
                        \"'+x\",\n\"'\tx\",\n,\nx,\nx,35000000000\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}

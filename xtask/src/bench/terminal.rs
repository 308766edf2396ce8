//! The tables on a terminal.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{
    Attribute, Cell as TextCell, CellAlignment, Color, ContentArrangement, TableComponent,
};

use super::baseline::Verdict;
use super::table::{Cell, Table};

/// Columns of a terminal in which every table fits.
const WIDTH: u16 = 100;
/// Backends that fit beside each other.
const MAX_BACKENDS: usize = 5;

/// The tables, in colour if the output is a terminal, and how to read them.
pub(crate) fn text(tables: &[Table], reference: &str) -> String {
    let drawn = tables.iter().map(|table| {
        let (title, reading) = (&table.title, &table.reading);
        let blocks: String =
            blocks(table).iter().map(|block| format!("{}\n", draw(block))).collect();
        format!("\n{title}\n{blocks}  {reading}\n")
    });
    format!(
        "{}\n2us-x2-gap20us: a job of 2 chunks of 2 µs, 20 µs after the last; ideal: one thread's share alone.\n\
         qkv-960x576: rows × columns. grouped: one dispatch for q, k, v, and one for gate, up.\n\
         (3.9): the same in round trips of a cache line between two CPUs.\n\
         Below a value: its ratio to {reference} (or to whom the title names), low–high over the rounds;\n\
         ~ is inside the noise.\n",
        drawn.collect::<String>()
    )
}

/// The table itself, or with its columns in blocks of about one width, each with the first column.
fn blocks(table: &Table) -> Vec<Table> {
    let n_backends = table.header.len().saturating_sub(1);
    if !table.is_by_backend || n_backends <= MAX_BACKENDS {
        return vec![table.clone()];
    }
    let width = n_backends.div_ceil(n_backends.div_ceil(MAX_BACKENDS));
    let columns = (1..=n_backends).step_by(width).map(|first| {
        let past = (first + width).min(n_backends + 1);
        Table {
            header: [&table.header[..1], &table.header[first..past]].concat(),
            rows: table.rows.iter().map(|row| [&row[..1], &row[first..past]].concat()).collect(),
            ..table.clone()
        }
    });
    columns.collect()
}

fn draw(table: &Table) -> comfy_table::Table {
    let mut drawn = comfy_table::Table::new();
    drawn.load_preset(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
    if table.rows.iter().flatten().all(|cell| cell.detail.is_empty()) {
        // Rows of one line need nothing between them.
        drawn.remove_style(TableComponent::HorizontalLines);
        drawn.remove_style(TableComponent::MiddleIntersections);
    }
    let bold = |title: &String| TextCell::new(title).add_attribute(Attribute::Bold);
    drawn.set_width(WIDTH).set_header(table.header.iter().map(bold));
    for row in &table.rows {
        drawn.add_row(row.iter().map(text_cell));
    }
    for column in drawn.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    drawn
}

fn text_cell(cell: &Cell) -> TextCell {
    let content = match cell.detail.as_str() {
        "" => cell.value.clone(),
        detail => format!("{}\n{detail}", cell.value),
    };
    match cell.verdict {
        Some(Verdict::Better) => TextCell::new(content).fg(Color::Green),
        Some(Verdict::Worse) => TextCell::new(content).fg(Color::Red),
        Some(Verdict::Noise) | None => TextCell::new(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(backends: &[&str], is_by_backend: bool) -> Table {
        let cell = |index: usize| Cell {
            value: format!("22.{index} µs (111)"),
            detail: "~×0.030–0.043".into(),
            verdict: None,
        };
        let first = Cell::from("1.25us-x32-gap20us");
        Table {
            title: "a title".into(),
            reading: "a reading".into(),
            header: [&["case"], backends].concat().into_iter().map(str::to_owned).collect(),
            rows: vec![std::iter::once(first).chain((0..backends.len()).map(cell)).collect()],
            is_by_backend,
        }
    }

    #[test]
    fn tables_fit_the_terminal() {
        let backends = [
            "serial",
            "spawn",
            "rayon",
            "rayon-inside",
            "epoch",
            "epoch-spin0",
            "epoch@set",
            "epoch@one-per-core",
        ];
        for n_backends in 1..=backends.len() {
            let text = text(&[table(&backends[..n_backends], true)], "rayon");
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(usize::from(WIDTH)), "{widest:?}\n{text}");
            for (index, backend) in backends.iter().enumerate().take(n_backends) {
                assert!(text.contains(backend), "{text}");
                assert!(text.contains(" 1.25us-x32-gap20us "), "unbroken in {text}");
                assert!(text.contains(&format!("22.{index} µs (111)")), "unbroken in {text}");
            }
        }
    }

    #[test]
    fn many_backends_stand_in_blocks_of_one_width() {
        let backends = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let headers = |n: usize, is_by_backend| -> Vec<String> {
            let blocks = blocks(&table(&backends[..n], is_by_backend));
            blocks.iter().map(|block| block.header.join(" ")).collect()
        };
        assert_eq!(headers(5, true), ["case a b c d e"]);
        assert_eq!(headers(6, true), ["case a b c", "case d e f"]);
        assert_eq!(headers(9, true), ["case a b c d e", "case f g h i"]);
        assert_eq!(headers(6, false), ["case a b c d e f"]);
        let last = &blocks(&table(&backends, true))[1];
        let values: Vec<&str> = last.rows[0].iter().map(|cell| cell.value.as_str()).collect();
        assert_eq!(
            values[1..],
            ["22.5 µs (111)", "22.6 µs (111)", "22.7 µs (111)", "22.8 µs (111)"]
        );
    }
}

//! The tables on a terminal.

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{
    Attribute, Cell as TextCell, CellAlignment, Color, ContentArrangement, TableComponent,
};

use super::baseline::Verdict;
use super::table::{Cell, Table};

/// Columns of a terminal in which every table fits.
const WIDTH: u16 = 100;

/// The tables, in colour if the output is a terminal, and how to read them.
pub(crate) fn text(tables: &[Table], reference: &str) -> String {
    let drawn = tables.iter().map(|table| {
        let (title, reading) = (&table.title, &table.reading);
        format!("\n{title}\n{}\n  {reading}\n", draw(table))
    });
    format!(
        "{}\n2us-x2-gap20us: a job of 2 chunks of 2 µs, 20 µs after the last; ideal: one thread's share alone.\n\
         qkv-960x576: rows × columns. grouped: one dispatch for q, k, v, and one for gate, up.\n\
         Below a value: its ratio to {reference}, low–high over the rounds; ~ is inside the noise.\n",
        drawn.collect::<String>()
    )
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

    #[test]
    fn tables_fit_the_terminal() {
        let header = ["case", "serial", "spawn", "rayon", "rayon-inside", "epoch", "epoch-spin0"];
        let cell =
            Cell { value: "12.3 GB/s".into(), detail: "~ ×0.95–1.03".into(), verdict: None };
        let mut row = vec![Cell::from("gate_up-16384x2048")];
        row.resize(header.len(), cell);
        let table = Table {
            title: "a title".into(),
            reading: "a reading".into(),
            header: header.map(str::to_owned).to_vec(),
            rows: vec![row],
        };
        let text = text(&[table], "rayon");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(usize::from(WIDTH)), "{widest:?}\n{text}");
        assert!(text.contains("~ ×0.95–1.03"), "{text}");
    }
}

//! A drawing of the machine: cores as boxes inside caches, nodes and packages.

use std::fmt::{self, Write};

use cpu_topology::{CpuPoolPlan, CpuSet, CpuTopology, Part, Region};

/// Lengths in pixels.
const ROW_WIDTH: u32 = 1100;
const GAP: u32 = 8;
const TITLE_HEIGHT: u32 = 20;
const CELL: (u32, u32) = (32, 24);
/// About the width of a character of the title's font.
const CHARACTER: u32 = 8;

/// Colours of classes, the fastest first; further ones share the last.
const CLASS_COLOURS: [&str; 4] = ["#f4a261", "#a8d5ba", "#b8c4e8", "#dcdcdc"];
/// Colours of regions by depth, lighter inside.
const REGION_COLOURS: [&str; 5] = ["#e3e8ee", "#ecf0f4", "#f3f6f9", "#f9fbfc", "#ffffff"];

const WORKER: &str = "#264653";
const COORDINATOR: &str = "#9b2226";

/// The drawing as the text of an SVG file.
pub(crate) fn draw(topology: &CpuTopology, plan: &CpuPoolPlan) -> String {
    let workers = plan.core_ids.iter().copied().collect();
    let picture = Picture { topology, plan, workers };
    let machine = picture.region(&topology.region(), ROW_WIDTH);
    let legend = picture.legend();
    let (width, height) =
        (machine.width.max(legend.width) + 2 * GAP, machine.height + legend.height + 3 * GAP);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <title>CPUs {}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n",
        topology.allowed_set()
    );
    // Writing into a string cannot fail.
    _ = machine.write(&mut text, GAP, GAP, 0);
    _ = legend.write(&mut text, GAP, machine.height + 2 * GAP, 0);
    text + "</svg>\n"
}

/// A box with its size, what is drawn for it, and the boxes in it with their places.
struct Shape {
    width: u32,
    height: u32,
    kind: Kind,
    inner: Vec<(u32, u32, Shape)>,
}

enum Kind {
    Region(String),
    Core {
        title: String,
        colour: &'static str,
    },
    /// A CPU: its text, whether it may be used, and what the plan wants with it.
    Cell {
        text: String,
        fill: &'static str,
        ink: &'static str,
        dashed: bool,
    },
    Text(String),
    Nothing,
}

struct Picture<'a> {
    topology: &'a CpuTopology,
    plan: &'a CpuPoolPlan,
    workers: CpuSet,
}

impl Picture<'_> {
    fn region(&self, region: &Region, max_width: u32) -> Shape {
        let inside = max_width.saturating_sub(2 * GAP);
        let parts = region.parts().iter().map(|part| match part {
            Part::Region(inner) => self.region(inner, inside),
            Part::Core(core) => self.core(*core),
        });
        framed(parts.collect(), inside, Kind::Region(region.names().join(", ")))
    }

    fn core(&self, index: usize) -> Shape {
        let core = &self.topology.cores()[index];
        let mut cells = core.cpus().iter().map(|cpu| self.cell(cpu)).collect::<Vec<_>>();
        let withheld = core.siblings_total().saturating_sub(core.cpus().len()).min(8);
        cells.extend((0..withheld).map(|_| cell(String::new(), "none", "black", true)));
        let colour = class_colour(core.class());
        framed(cells, 4 * (CELL.0 + GAP), Kind::Core { title: format!("core {index}"), colour })
    }

    fn cell(&self, cpu: usize) -> Shape {
        let (fill, ink) = match () {
            () if self.workers.contains(cpu) => (WORKER, "white"),
            () if self.plan.coordinator_cpu == Some(cpu) => (COORDINATOR, "white"),
            () => ("white", "black"),
        };
        cell(cpu.to_string(), fill, ink, false)
    }

    /// What colours and frames mean.
    fn legend(&self) -> Shape {
        let mut rows = Vec::new();
        let mut add = |sample: Shape, text: String| {
            let width = text.chars().count() as u32 * CHARACTER;
            let text = Shape { width, height: CELL.1, kind: Kind::Text(text), inner: Vec::new() };
            rows.push(flow(vec![sample, text], ROW_WIDTH, Kind::Nothing, 0));
        };
        for (index, class) in self.topology.classes().iter().enumerate() {
            let kind = if class.is_efficiency() { "efficiency" } else { "performance" };
            let label = class.label().map(|label| format!(" \"{label}\"")).unwrap_or_default();
            let text = format!("class {index}{label}: {} {kind} cores", class.n_cores());
            add(cell(String::new(), class_colour(index), "black", false), text);
        }
        add(
            cell(String::new(), WORKER, "white", false),
            format!("worker ({} in the plan)", self.plan.num_threads),
        );
        if self.plan.coordinator_cpu.is_some() {
            add(cell(String::new(), COORDINATOR, "white", false), "coordinator".to_owned());
        }
        add(cell(String::new(), "white", "black", false), "allowed".to_owned());
        add(cell(String::new(), "none", "black", true), "not allowed".to_owned());
        if let Some(quota) = self.topology.quota() {
            let text = format!("quota: {:.2} CPUs", quota.ratio());
            let width = text.chars().count() as u32 * CHARACTER;
            rows.push(Shape { width, height: CELL.1, kind: Kind::Text(text), inner: Vec::new() });
        }
        flow(rows, 1, Kind::Nothing, 0)
    }
}

fn class_colour(class: usize) -> &'static str {
    CLASS_COLOURS[class.min(CLASS_COLOURS.len() - 1)]
}

fn cell(text: String, fill: &'static str, ink: &'static str, dashed: bool) -> Shape {
    let width = CELL.0.max(text.len() as u32 * CHARACTER + 4);
    Shape { width, height: CELL.1, kind: Kind::Cell { text, fill, ink, dashed }, inner: Vec::new() }
}

/// Shapes in rows, in a frame with a title.
fn framed(shapes: Vec<Shape>, max_width: u32, kind: Kind) -> Shape {
    let title_width = match &kind {
        Kind::Region(title) | Kind::Core { title, .. } => title.chars().count() as u32 * CHARACTER,
        _ => 0,
    };
    let mut shape = flow(shapes, max_width, kind, TITLE_HEIGHT);
    for (x, _, _) in &mut shape.inner {
        *x += GAP;
    }
    shape.width = shape.width.max(title_width) + 2 * GAP;
    shape.height += GAP;
    shape
}

/// Shapes side by side, in a new row where one would pass the width. They start below `top`.
fn flow(shapes: Vec<Shape>, max_width: u32, kind: Kind, top: u32) -> Shape {
    let (mut x, mut y, mut row_height, mut width) = (0, top, 0, 0);
    let mut inner = Vec::with_capacity(shapes.len());
    for shape in shapes {
        if x > 0 && x + shape.width > max_width {
            (x, y, row_height) = (0, y + row_height + GAP, 0);
        }
        width = width.max(x + shape.width);
        row_height = row_height.max(shape.height);
        let at = x;
        x += shape.width + GAP;
        inner.push((at, y, shape));
    }
    Shape { width, height: y + row_height, kind, inner }
}

impl Shape {
    fn write(&self, text: &mut String, x: u32, y: u32, depth: usize) -> fmt::Result {
        let Self { width, height, .. } = self;
        let frame = format!("x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"");
        match &self.kind {
            Kind::Region(title) => {
                let colour = REGION_COLOURS[depth.min(REGION_COLOURS.len() - 1)];
                writeln!(text, "<rect {frame} rx=\"4\" fill=\"{colour}\" stroke=\"#8d99a6\"/>")?;
                label(text, x + GAP, y + 15, "start", "black", title)?;
            }
            Kind::Core { title, colour } => {
                writeln!(text, "<rect {frame} rx=\"3\" fill=\"{colour}\" stroke=\"#555\"/>")?;
                label(text, x + GAP, y + 15, "start", "black", title)?;
            }
            Kind::Cell { text: name, fill, ink, dashed } => {
                let dashes = if *dashed { " stroke-dasharray=\"3 2\"" } else { "" };
                writeln!(text, "<rect {frame} fill=\"{fill}\" stroke=\"#333\"{dashes}/>")?;
                if !name.is_empty() {
                    label(text, x + width / 2, y + 17, "middle", ink, name)?;
                }
            }
            Kind::Text(words) => label(text, x, y + 17, "start", "black", words)?,
            Kind::Nothing => {}
        }
        for (inner_x, inner_y, inner) in &self.inner {
            inner.write(text, x + inner_x, y + inner_y, depth + 1)?;
        }
        Ok(())
    }
}

fn label(text: &mut String, x: u32, y: u32, anchor: &str, ink: &str, words: &str) -> fmt::Result {
    let words = escaped(words);
    writeln!(
        text,
        "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{ink}\">{words}</text>"
    )
}

/// Text for XML: its special characters escaped, and those that it forbids left out.
fn escaped(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for character in words.chars().filter(|character| !character.is_control()) {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{FFFE}' | '\u{FFFF}' => {}
            other => escaped.push(other),
        }
    }
    escaped
}

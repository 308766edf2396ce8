//! Plots as SVG: a group per case, a bar per backend, the interval as a whisker.
//!
//! Times over the ideal span four decades, so they stand on a logarithmic axis as points; rates start
//! at zero and are bars. Text has no colour of its own: the page gives it one, for light and dark.

use anyhow::anyhow;
use benches::{Backend, Contender, Placement};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::format::quantity;
use super::results::Row;
use super::section::Section;

const WIDTH: u32 = 880;
const LABELS_WIDTH: u32 = 230;
const AXIS_HEIGHT: u32 = 30;
const BAR_HEIGHT: u32 = 17;
const GROUP_GAP: u32 = 12;
/// Grey that is seen on white and on black.
const INK: RGBColor = RGBColor(128, 134, 142);
/// Times below this are drawn at the left edge: nothing shorter can be told from zero.
const SHORTEST_NS: f64 = 10.0;

type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Plane<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// The colour of a contender in every plot: that of its backend, darker or lighter where its threads are bound, and darker the sooner
/// they park if that was chosen.
pub(crate) fn color(contender: &str) -> RGBColor {
    let Ok(contender) = contender.parse::<Contender>() else { return INK };
    let RGBColor(red, green, blue) = color_of(contender.backend());
    let shade = |part: u8| match contender.placement() {
        Placement::Set => part / 3 * 2,
        Placement::OnePerCore => u8::MAX - (u8::MAX - part) / 2,
        _ => part,
    };
    let strength = contender.spin().map_or(1.0, |spin| 0.4 + (f64::from(spin) + 1.0).log2() / 64.0);
    let tint = |part: u8| (f64::from(shade(part)) * strength) as u8;
    RGBColor(tint(red), tint(green), tint(blue))
}

const fn color_of(backend: Backend) -> RGBColor {
    match backend {
        Backend::Serial => RGBColor(125, 135, 150),
        Backend::Spawn => RGBColor(201, 133, 61),
        Backend::Rayon => RGBColor(214, 79, 104),
        Backend::RayonInside => RGBColor(160, 107, 200),
        Backend::Epoch => RGBColor(38, 156, 112),
        Backend::EpochSpin0 => RGBColor(61, 132, 214),
        Backend::EpochX2 => RGBColor(110, 190, 90),
        Backend::EpochX4 => RGBColor(170, 190, 60),
        Backend::Original => RGBColor(224, 122, 148),
        Backend::Spindle => RGBColor(190, 90, 190),
        Backend::Paralight => RGBColor(220, 160, 30),
        Backend::Chili => RGBColor(200, 60, 40),
        Backend::Libgomp => RGBColor(120, 120, 220),
        Backend::Pthreadpool => RGBColor(150, 100, 60),
        Backend::LlamaCpp => RGBColor(230, 190, 60),
        Backend::Openblas => RGBColor(90, 110, 200),
        Backend::Matrixmultiply => RGBColor(205, 145, 90),
        Backend::Gemm => RGBColor(80, 160, 200),
        Backend::Candle => RGBColor(215, 110, 50),
        Backend::OriginalMatvec => RGBColor(170, 70, 100),
    }
}

/// How values become positions on the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(rows: &[&Row]) -> Self {
        let highest = rows.iter().map(|row| row.high).fold(0.0, f64::max);
        if rows.iter().all(|row| row.unit == "ns") {
            let high = (highest.max(10.0 * SHORTEST_NS) * 2.0).log10();
            return Self { logarithmic: true, low: SHORTEST_NS.log10(), high };
        }
        Self {
            logarithmic: false,
            low: 0.0,
            high: if highest > 0.0 { highest * 1.15 } else { 1.0 },
        }
    }

    fn position(self, value: f64) -> f64 {
        if self.logarithmic { value.max(SHORTEST_NS).log10() } else { value }
    }

    fn value(self, position: f64) -> f64 {
        if self.logarithmic { 10_f64.powf(position) } else { position }
    }
}

/// One plot of the results of one section.
pub(crate) fn svg(section: &Section<'_>) -> anyhow::Result<String> {
    let mut svg = String::new();
    draw(&mut svg, section).map_err(|error| anyhow!("drawing a plot: {error}"))?;
    Ok(svg)
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn draw(svg: &mut String, section: &Section<'_>) -> Outcome<()> {
    let cases = section.cases();
    let height = GROUP_GAP * cases.len() as u32 + BAR_HEIGHT * section.rows.len() as u32;
    let canvas = SVGBackend::with_string(svg, (WIDTH, height + AXIS_HEIGHT)).into_drawing_area();
    let scale = Scale::of(&section.rows);
    let plane = axes(&canvas, scale, height)?;

    let mut top = f64::from(GROUP_GAP) / 2.0;
    for case in cases {
        let first = top;
        for row in section.rows.iter().filter(|row| section.case(row) == case) {
            bar(&canvas, &plane, scale, row, top)?;
            top += f64::from(BAR_HEIGHT);
        }
        label(&canvas, &plane, scale, case, f64::midpoint(first, top))?;
        top += f64::from(GROUP_GAP);
    }
    canvas.present()?;
    Ok(())
}

/// The horizontal axis with its grid. Vertically the plane counts pixels from the top.
fn axes<'a>(canvas: &Canvas<'a>, scale: Scale, height: u32) -> Outcome<Plane<'a>> {
    let unit_label = |position: &f64| {
        let value = scale.value(*position);
        match scale.logarithmic {
            true => quantity(value, "ns"),
            false if scale.high < 8.0 => format!("{value:.1}"),
            false => format!("{value:.0}"),
        }
    };
    let mut chart = ChartBuilder::on(canvas)
        .set_label_area_size(LabelAreaPosition::Left, LABELS_WIDTH)
        .set_label_area_size(LabelAreaPosition::Bottom, AXIS_HEIGHT)
        .margin_right(24)
        .build_cartesian_2d(scale.low..scale.high, f64::from(height)..0.0)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .disable_y_axis()
        .light_line_style(TRANSPARENT)
        .bold_line_style(INK.mix(0.35))
        .axis_style(INK.mix(0.6))
        .x_labels(if scale.logarithmic { 6 } else { 8 })
        .x_label_style(("sans-serif", 13))
        .x_label_formatter(&unit_label)
        .draw()?;
    Ok(chart.plotting_area().clone())
}

/// The mark of one row, its whisker and its value.
fn bar(canvas: &Canvas<'_>, plane: &Plane<'_>, scale: Scale, row: &Row, top: f64) -> Outcome<()> {
    let middle = top + f64::from(BAR_HEIGHT) / 2.0;
    let (low, median, high) =
        (scale.position(row.low), scale.position(row.median), scale.position(row.high));
    let color = color(&row.backend);
    if scale.logarithmic {
        plane.draw(&Circle::new((median, middle), 4, color.filled()))?;
        plane.draw(&PathElement::new([(low, middle), (high, middle)], color.stroke_width(2)))?;
    } else {
        let corners = [(scale.low, top + 1.5), (median, top + f64::from(BAR_HEIGHT) - 1.5)];
        plane.draw(&Rectangle::new(corners, color.mix(0.85).filled()))?;
        plane.draw(&PathElement::new([(low, middle), (high, middle)], INK.stroke_width(2)))?;
    }
    let (x, y) = plane.map_coordinate(&(high.max(median), middle));
    let style = TextStyle::from(("sans-serif", 12)).pos(Pos::new(HPos::Left, VPos::Center));
    let text = quantity(row.median, &row.unit);
    canvas.draw(&Text::new(text, (x + 8, y), style))?;
    Ok(())
}

/// The name of a case, left of its group.
fn label(
    canvas: &Canvas<'_>,
    plane: &Plane<'_>,
    scale: Scale,
    case: &str,
    middle: f64,
) -> Outcome<()> {
    let (x, y) = plane.map_coordinate(&(scale.low, middle));
    let style = TextStyle::from(("sans-serif", 13)).pos(Pos::new(HPos::Right, VPos::Center));
    canvas.draw(&Text::new(case.to_owned(), (x - 8, y), style))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::example;
    use super::*;

    #[test]
    fn a_plot_names_its_cases_and_values() {
        let (results, _) = example();
        let svg = svg(&Section::all(&results)[0]).unwrap();
        assert!(svg.starts_with("<svg"));
        for text in ["2us-x2-gap20us", "170 ns", "14.0 µs"] {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }

    #[test]
    fn no_two_contenders_look_the_same() {
        let all = Contender::all(Backend::ALL, Placement::ALL, &[]);
        let colors: std::collections::BTreeSet<(u8, u8, u8)> = all
            .iter()
            .map(|contender| {
                let RGBColor(red, green, blue) = color(&contender.to_string());
                (red, green, blue)
            })
            .collect();
        assert_eq!(colors.len(), all.len());
        let spinning = ["epoch", "epoch@spin=0", "epoch@spin=4000", "epoch@spin=200000"].map(color);
        for (index, color) in spinning.iter().enumerate() {
            assert!(!spinning[..index].contains(color), "{color:?}");
        }
    }

    #[test]
    fn rates_start_at_zero_and_times_are_logarithmic() {
        let (results, _) = example();
        let times: Vec<&Row> = results.results.iter().collect();
        assert!(Scale::of(&times).logarithmic);
        assert_eq!(Scale::of(&times).position(-5.0), 1.0);
        let rate = Row { unit: "GB/s".into(), high: 20.0, ..times[0].clone() };
        assert_eq!(Scale::of(&[&rate]), Scale { logarithmic: false, low: 0.0, high: 23.0 });
    }
}

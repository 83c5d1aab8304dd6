//! Charts of lines: a series for each transport, marks for what papers print.

use super::scale::{Form, Scale};
use super::svg::{Anchor, At, Svg};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 330.0;
/// The area of the lines.
const LEFT: f64 = 56.0;
const RIGHT: f64 = 348.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 284.0;
/// Least distance of two labels.
const LABEL: f64 = 15.0;

/// A line with markers.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) points: Vec<At>,
    /// Number of its colour and marker.
    pub(crate) style: usize,
    pub(crate) is_dashed: bool,
}

/// A value from a text: at a point, or, without a place on the axis, across.
#[derive(Clone, Debug)]
pub(crate) struct Mark {
    pub(crate) letter: String,
    pub(crate) x: Option<f64>,
    pub(crate) y: f64,
}

/// An axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) title: String,
    pub(crate) form: Form,
}

/// A chart.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) name: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) marks: Vec<Mark>,
    /// Where y is x.
    pub(crate) has_diagonal: bool,
}

/// Classes of a style.
pub(crate) fn class(kind: &str, style: usize, is_dashed: bool) -> String {
    format!("{kind} s{}{}", style % super::svg::SHAPES, if is_dashed { " dashed" } else { "" })
}

impl Chart {
    pub(crate) fn draw(&self) -> String {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let mut xs: Vec<f64> = points().map(|point| point.0).collect();
        xs.extend(self.marks.iter().filter_map(|mark| mark.x));
        let mut ys: Vec<f64> = points().map(|point| point.1).collect();
        ys.extend(self.marks.iter().map(|mark| mark.y));
        let x = Scale::new(self.x.form, &xs, (LEFT, RIGHT));
        let y = Scale::new(self.y.form, &ys, (BOTTOM, TOP));
        let mut svg = Svg::new(WIDTH, HEIGHT);
        self.axes(&mut svg, &x, &y);
        if self.has_diagonal {
            diagonal(&mut svg, &x, &y, (&xs, &ys));
        }
        for series in &self.series {
            self.line(&mut svg, series, &x, &y);
        }
        self.labels(&mut svg, &x, &y);
        self.draw_marks(&mut svg, &x, &y);
        svg.finish(&self.name)
    }

    fn axes(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        for (value, text) in y.ticks() {
            let at = y.place(value);
            svg.line("grid", (LEFT, at), (RIGHT, at));
            svg.text("tick", (LEFT - 7.0, at + 4.0), Anchor::End, &text);
        }
        let ticks = x.ticks();
        let every = every(&ticks, x);
        for (at, (value, text)) in ticks.iter().enumerate() {
            let place = x.place(*value);
            svg.line("tickmark", (place, BOTTOM), (place, BOTTOM + 5.0));
            if at % every == 0 {
                svg.text("tick", (place, BOTTOM + 19.0), Anchor::Middle, text);
            }
        }
        svg.line("axis", (LEFT, BOTTOM), (RIGHT, BOTTOM));
        svg.text(
            "title",
            (f64::midpoint(LEFT, RIGHT), BOTTOM + 38.0),
            Anchor::Middle,
            &self.x.title,
        );
        svg.text("title", (LEFT - 48.0, TOP - 12.0), Anchor::Start, &self.y.title);
    }

    fn line(&self, svg: &mut Svg, series: &Series, x: &Scale, y: &Scale) {
        let place = |point: &At| (x.place(point.0), y.place(point.1));
        let places: Vec<At> = series.points.iter().map(place).collect();
        if places.len() > 1 {
            svg.path(&class("line", series.style, series.is_dashed), &places);
        }
        for (place, point) in places.iter().zip(&series.points) {
            let text = format!("{}: {} at {}", series.label, point.1, point.0);
            svg.marker(
                &class("marker", series.style, series.is_dashed),
                series.style,
                *place,
                &text,
            );
        }
    }

    /// The names of the series beside their last points, apart from each other.
    fn labels(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let mut labels: Vec<(f64, At, &Series)> = self
            .series
            .iter()
            .filter_map(|series| {
                let last = series.points.last()?;
                let at = (x.place(last.0), y.place(last.1));
                Some((at.1, at, series))
            })
            .collect();
        labels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted: Vec<f64> = labels.iter().map(|label| label.0).collect();
        let places = apart(&wanted, LABEL, (TOP, BOTTOM));
        for ((_, at, series), place) in labels.iter().zip(places) {
            let start = RIGHT + 14.0;
            svg.line(
                &class("leader", series.style, false),
                (at.0 + 5.0, at.1),
                (start - 2.0, place),
            );
            let class = class("label", series.style, false);
            svg.text(&class, (start, place + 4.5), Anchor::Start, &series.label);
        }
    }

    fn draw_marks(&self, svg: &mut Svg, x: &Scale, y: &Scale) {
        let mut marks: Vec<&Mark> = self.marks.iter().collect();
        marks.sort_by(|a, b| a.y.total_cmp(&b.y).reverse());
        let across = marks.iter().filter(|mark| mark.x.is_none());
        for (at, mark) in across.enumerate() {
            let (height, place) = (y.place(mark.y), LEFT + 6.0 + 14.0 * (at % 6) as f64);
            svg.line("printed-rule", (LEFT, height), (RIGHT, height));
            svg.text("letter", (place, height - 3.5), Anchor::Start, &mark.letter);
        }
        let placed = marks
            .iter()
            .filter_map(|mark| Some(((x.place(mark.x?), y.place(mark.y)), &*mark.letter, mark.y)));
        let placed: Vec<(At, &str, f64)> = placed.collect();
        for ((place, letter, value), (side, height)) in placed.iter().zip(letters(&placed)) {
            svg.marker("printed", 3, *place, &format!("{letter}: {value}"));
            let anchor = if side < 0.0 { Anchor::End } else { Anchor::Start };
            svg.text("letter", (place.0 + 7.0 * side, height + 4.5), anchor, letter);
        }
    }
}

/// Which of the ticks have a text, so that no two touch: each, every second one, and so on.
fn every(ticks: &[(f64, String)], x: &Scale) -> usize {
    let fits = |every: &usize| {
        let texts: Vec<&(f64, String)> = ticks.iter().step_by(*every).collect();
        texts.windows(2).all(|pair| {
            let letters = (pair[0].1.chars().count() + pair[1].1.chars().count()) as f64;
            x.place(pair[1].0) - x.place(pair[0].0) > 4.4 * letters + 4.0
        })
    };
    (1..).find(fits).unwrap_or(1)
}

/// Draws the line on which y is x, as far as both have values.
fn diagonal(svg: &mut Svg, x: &Scale, y: &Scale, (xs, ys): (&[f64], &[f64])) {
    let most = |values: &[f64]| values.iter().copied().fold(0.0_f64, f64::max);
    let from = xs.iter().copied().fold(f64::MAX, f64::min);
    let to = most(xs).min(most(ys));
    if from < to {
        svg.line("diagonal", (x.place(from), y.place(from)), (x.place(to), y.place(to)));
    }
}

/// On which side of its mark a letter stands, and how high. Marks near each other have theirs on
/// alternate sides, and apart.
fn letters(marks: &[(At, &str, f64)]) -> Vec<(f64, f64)> {
    const NEAR: f64 = 24.0;
    let mut found = vec![(1.0, 0.0); marks.len()];
    let mut left: Vec<usize> = (0..marks.len()).collect();
    while let Some(first) = left.first() {
        let x = marks[*first].0.0;
        let (group, others) = left.iter().partition(|at| (marks[**at].0.0 - x).abs() < NEAR);
        left = others;
        let group: Vec<usize> = group;
        // At the left edge the other side has the axis' numbers.
        let sides = if x < LEFT + 10.0 { 1 } else { 2 };
        for side in 0..sides {
            let of: Vec<usize> = group.iter().skip(side).step_by(sides).copied().collect();
            let wanted: Vec<f64> = of.iter().map(|at| marks[*at].0.1).collect();
            let places = apart(&wanted, LABEL - 2.0, (TOP, BOTTOM));
            for (at, place) in of.into_iter().zip(places) {
                found[at] = (if side == 1 { -1.0 } else { 1.0 }, place);
            }
        }
    }
    found
}

/// Places near those that are wanted, in the same order, at least so far from each other.
fn apart(wanted: &[f64], distance: f64, (low, high): (f64, f64)) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for at in 1..places.len() {
        places[at] = places[at].max(places[at - 1] + distance);
    }
    // Those that are too far down move up again, and push others.
    let mut limit = high;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - distance;
    }
    let above = places.first().map_or(0.0, |first| (low - first).max(0.0));
    places.iter_mut().for_each(|place| *place += above);
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_order_and_distance() {
        let places = apart(&[10.0, 11.0, 12.0, 90.0, 99.0], 15.0, (0.0, 100.0));
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 15.0 - 1e-9), "{places:?}");
        assert!(places[0] >= 0.0 && places[4] <= 100.0, "{places:?}");
        assert!(apart(&[], 15.0, (0.0, 1.0)).is_empty());
    }

    #[test]
    fn a_chart_has_a_marker_for_each_point_and_a_letter_for_each_mark() {
        let axis = |title: &str, form| Axis { title: title.to_owned(), form };
        let chart = Chart {
            name: "latency".to_owned(),
            x: axis("bytes", Form::Size),
            y: axis("us", Form::Log),
            series: vec![Series {
                label: "ring <1>".to_owned(),
                points: vec![(0.0, 0.1), (4.0, 0.12), (64.0, 0.2)],
                style: 1,
                is_dashed: true,
            }],
            marks: vec![
                Mark { letter: "a".to_owned(), x: Some(4.0), y: 10.0 },
                Mark { letter: "b".to_owned(), x: None, y: 20.0 },
            ],
            has_diagonal: false,
        };
        let svg = chart.draw();
        assert_eq!(svg.matches("class=\"marker s1 dashed\"").count(), 3);
        assert_eq!(svg.matches("class=\"letter\"").count(), 2);
        assert!(svg.contains(">ring &lt;1&gt;</text>") && !svg.contains("NaN"), "{svg}");
    }
}

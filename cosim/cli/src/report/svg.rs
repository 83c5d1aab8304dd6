//! Drawings: the few elements of SVG that figures need. Colours and fonts are the page's.

use core::fmt::Write as _;

/// Text that may stand between tags and in attributes.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// A point of a drawing.
pub(crate) type At = (f64, f64);

/// Which end of a text stands at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// Shapes of markers, so that colour is not needed to distinguish lines.
pub(crate) const SHAPES: usize = 8;

/// The outline of a marker about a point.
fn shape(index: usize, (x, y): At, r: f64) -> String {
    let polygon = |points: &[At]| {
        let mut path = String::new();
        for (at, (dx, dy)) in points.iter().enumerate() {
            let letter = if at == 0 { 'M' } else { 'L' };
            write!(path, "{letter}{:.1} {:.1}", x + dx * r, y + dy * r).expect(WRITES);
        }
        path + "Z"
    };
    match index % SHAPES {
        0 => {
            let (left, d) = (x - r, 2.0 * r);
            format!("M{left:.1} {y:.1}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z")
        }
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
        3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)]),
        5 => polygon(&[
            (-0.4, -1.2),
            (0.4, -1.2),
            (0.4, -0.4),
            (1.2, -0.4),
            (1.2, 0.4),
            (0.4, 0.4),
            (0.4, 1.2),
            (-0.4, 1.2),
            (-0.4, 0.4),
            (-1.2, 0.4),
            (-1.2, -0.4),
            (-0.4, -0.4),
        ]),
        6 => polygon(&[(-1.3, -0.5), (1.3, -0.5), (1.3, 0.5), (-1.3, 0.5)]),
        _ => polygon(&[(-0.5, -1.3), (0.5, -1.3), (0.5, 1.3), (-0.5, 1.3)]),
    }
}

const WRITES: &str = "a string takes every write";

/// A drawing.
#[derive(Clone, Debug)]
pub(crate) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    pub(crate) const fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub(crate) fn line(&mut self, class: &str, (x1, y1): At, (x2, y2): At) {
        writeln!(
            self.body,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        )
        .expect(WRITES);
    }

    /// A line through points.
    pub(crate) fn path(&mut self, class: &str, points: &[At]) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        writeln!(self.body, r#"<polyline class="{class}" points="{}"/>"#, points.join(" "))
            .expect(WRITES);
    }

    pub(crate) fn rect(&mut self, class: &str, (x, y): At, (width, height): At) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        )
        .expect(WRITES);
    }

    pub(crate) fn text(&mut self, class: &str, (x, y): At, anchor: Anchor, text: &str) {
        let (anchor, text) = (anchor.name(), escape(text));
        writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        )
        .expect(WRITES);
    }

    /// A marker by its number, with a text that a pointer shows.
    pub(crate) fn marker(&mut self, class: &str, index: usize, at: At, text: &str) {
        let (path, text) = (shape(index, at, 3.6), escape(text));
        writeln!(self.body, r#"<path class="{class}" d="{path}"><title>{text}</title></path>"#)
            .expect(WRITES);
    }

    /// The element; `name` is what a screen reader says.
    pub(crate) fn finish(self, name: &str) -> String {
        let Self { width, height, body } = self;
        let name = escape(name);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{name}\">\n{body}</svg>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_its_element() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("a", (1.0, 2.0), Anchor::End, "</text><script> & \"x\" 'y'");
        let text = svg.finish("a \"name\" <b>");
        assert!(
            text.contains("&lt;/text&gt;&lt;script&gt; &amp; &quot;x&quot; &#39;y&#39;"),
            "{text}"
        );
        assert!(text.contains("aria-label=\"a &quot;name&quot; &lt;b&gt;\""), "{text}");
    }

    #[test]
    fn each_marker_has_its_own_shape() {
        let mut shapes: Vec<String> = (0..SHAPES).map(|at| shape(at, (5.0, 5.0), 4.0)).collect();
        shapes.sort();
        shapes.dedup();
        assert_eq!(shapes.len(), SHAPES);
    }

    #[test]
    fn a_rectangle_is_never_negative() {
        let mut svg = Svg::new(1.0, 1.0);
        svg.rect("a", (0.0, 0.0), (-3.0, 2.0));
        assert!(svg.finish("").contains("width=\"0.0\""));
    }
}

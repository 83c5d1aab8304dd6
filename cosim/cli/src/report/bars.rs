//! Charts of bars: values beside each other, parts of a whole, steps one after the other.

use super::chart::class;
use super::svg::{Anchor, Svg};
use crate::bench::series::digits;

const WIDTH: f64 = 480.0;
const LEFT: f64 = 8.0;
const RIGHT: f64 = 472.0;
/// Height of a bar, and of a bar with its name above.
const BAR: f64 = 16.0;
const ROW: f64 = 42.0;

/// A bar: its name, its parts, and a text behind.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) name: String,
    /// Values with the numbers of their colours.
    pub(crate) parts: Vec<(f64, usize)>,
    pub(crate) note: String,
    /// A goal, drawn across.
    pub(crate) goal: Option<f64>,
}

/// Bars on a common scale from zero. Those that are `None` long have only a name.
pub(crate) fn bars(name: &str, bars: &[Bar]) -> String {
    let total = |bar: &Bar| bar.parts.iter().map(|part| part.0).sum::<f64>();
    let reach = |bar: &Bar| total(bar).max(bar.goal.unwrap_or(0.0));
    let most = bars.iter().map(reach).fold(f64::MIN_POSITIVE, f64::max);
    each(name, bars, |_| most)
}

/// Bars of different units: each is as long as its goal or its value, whichever is more.
pub(crate) fn bars_by_goal(name: &str, bars: &[Bar]) -> String {
    let total = |bar: &Bar| bar.parts.iter().map(|part| part.0).sum::<f64>();
    each(name, bars, |bar| total(bar).max(bar.goal.unwrap_or(0.0)).max(f64::MIN_POSITIVE) * 1.1)
}

fn each(name: &str, bars: &[Bar], full: impl Fn(&Bar) -> f64) -> String {
    let mut svg = Svg::new(WIDTH, ROW * bars.len() as f64 + 6.0);
    for (at, bar) in bars.iter().enumerate() {
        let top = ROW * at as f64 + 4.0;
        let width = |value: f64| value / full(bar) * (RIGHT - LEFT);
        svg.text("barname", (LEFT, top + 11.0), Anchor::Start, &bar.name);
        svg.text("barnote", (RIGHT, top + 11.0), Anchor::End, &bar.note);
        let mut x = LEFT;
        for (value, style) in &bar.parts {
            let width = width(*value);
            svg.rect(&class("bar", *style, false), (x, top + 16.0), (width - 1.0, BAR));
            let text = digits(*value);
            if bar.parts.len() > 1 && width > 8.0 * text.chars().count() as f64 + 4.0 {
                svg.text("inbar", (x + width / 2.0, top + 28.0), Anchor::Middle, &text);
            }
            x += width;
        }
        if let Some(goal) = bar.goal {
            let x = LEFT + width(goal);
            svg.line("goal", (x, top + 13.0), (x, top + 19.0 + BAR));
        }
    }
    svg.finish(name)
}

/// A step: its name, where it begins and ends, and the number of its colour.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) from: f64,
    pub(crate) to: f64,
    pub(crate) style: usize,
}

/// Steps below each other, each where it is in time.
pub(crate) fn waterfall(name: &str, steps: &[Step], unit: &str) -> String {
    const LINE: f64 = 20.0;
    const START: f64 = 232.0;
    const END: f64 = 440.0;
    let all = steps.iter().map(|step| step.to).fold(f64::MIN_POSITIVE, f64::max);
    let place = |value: f64| START + value / all * (END - START);
    let mut svg = Svg::new(WIDTH, LINE * (steps.len() + 1) as f64 + 8.0);
    for (at, step) in steps.iter().enumerate() {
        let y = LINE * at as f64 + 4.0;
        let (from, to) = (place(step.from), place(step.to));
        svg.text("step", (START - 8.0, y + 13.0), Anchor::End, &step.name);
        svg.line("grid", (START, y + LINE - 1.0), (END, y + LINE - 1.0));
        svg.rect(
            &class("bar", step.style, false),
            (from, y + 2.0),
            ((to - from).max(1.5), LINE - 5.0),
        );
        let text = format!("+{}", digits_of(step.to - step.from));
        svg.text("tick", (to.max(from + 1.5) + 4.0, y + 13.0), Anchor::Start, &text);
    }
    let y = LINE * steps.len() as f64 + 17.0;
    svg.text("step", (START - 8.0, y), Anchor::End, "in all");
    svg.text("step", (START, y), Anchor::Start, &format!("{} {unit}", digits_of(all)));
    svg.finish(name)
}

fn digits_of(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(parts: &[f64], goal: Option<f64>) -> Bar {
        let parts = parts.iter().enumerate().map(|(at, value)| (*value, at)).collect();
        Bar { name: "a & b".to_owned(), parts, note: "n".to_owned(), goal }
    }

    fn widths(svg: &str) -> Vec<f64> {
        let rects = svg.split("<rect").skip(1);
        let width = |rect: &str| rect.split("width=\"").nth(1)?.split('"').next()?.parse().ok();
        rects.filter_map(width).collect()
    }

    #[test]
    fn the_longest_bar_fills_the_width() {
        let widths = widths(&bars("bars", &[bar(&[10.0], None), bar(&[15.0, 5.0], None)]));
        assert_eq!(widths, [231.0, 347.0, 115.0]);
    }

    #[test]
    fn a_goal_beyond_the_value_is_inside() {
        let svg = bars_by_goal("bars", &[bar(&[1.0], Some(100.0)), bar(&[0.0], None)]);
        assert!(svg.contains("class=\"goal\"") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn steps_follow_each_other() {
        let step = |from, to| Step { name: "s".to_owned(), from, to, style: 0 };
        let svg = waterfall("steps", &[step(0.0, 10.0), step(10.0, 40.0)], "cycles");
        assert!(svg.contains(">+10</text>") && svg.contains(">+30</text>"), "{svg}");
        assert!(svg.contains(">40 cycles</text>"), "{svg}");
    }
}

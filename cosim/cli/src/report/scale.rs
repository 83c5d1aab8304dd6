//! Scales of axes: where a value stands, and which values are written.

use crate::bench::series::{digits, size};

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Evenly, from zero.
    Linear,
    /// By their logarithm; values must be positive.
    Log,
    /// Sizes: by their logarithm, and zero beside one.
    Size,
}

/// An axis from one end of a drawing's area to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    form: Form,
    /// Values at the ends, as the form has them.
    low: f64,
    high: f64,
    /// Places of the ends.
    start: f64,
    end: f64,
}

fn warped(form: Form, value: f64) -> f64 {
    match form {
        Form::Linear => value,
        Form::Log => value.max(f64::MIN_POSITIVE).log10(),
        // Four times as much is one step.
        Form::Size if value < 1.0 => value,
        Form::Size => 1.0 + value.log2() / 2.0,
    }
}

impl Scale {
    /// An axis that all values fit on.
    pub(crate) fn new(form: Form, values: &[f64], (start, end): (f64, f64)) -> Self {
        let usable = |value: &&f64| value.is_finite() && (form != Form::Log || **value > 0.0);
        let mut bounds = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.iter().filter(usable) {
            let value = warped(form, *value);
            bounds = (bounds.0.min(value), bounds.1.max(value));
        }
        let (low, high) = if bounds.0 > bounds.1 { (0.0, 1.0) } else { bounds };
        let (low, high) = match form {
            Form::Linear => (low.min(0.0), high.max(f64::MIN_POSITIVE) * 1.06),
            // At least half a decade, so that equal values do not look different.
            Form::Log => (low - 0.08, high.max(low + 0.4) + 0.08),
            Form::Size => (low, high.max(low + 1.0)),
        };
        Self { form, low, high, start, end }
    }

    /// The place of a value.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let part = (warped(self.form, value) - self.low) / (self.high - self.low);
        self.start + part.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// Values to write, with their texts, in order.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        match self.form {
            Form::Linear => {
                let step = step(self.high - self.low);
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few")]
                let count = ((self.high - self.low) / step) as usize;
                let values =
                    (0..=count).map(|at| (self.low / step).ceil() * step + at as f64 * step);
                values.filter(|value| *value <= self.high).map(|v| (v, short(v))).collect()
            }
            Form::Log => {
                let factors: &[f64] =
                    if self.high - self.low > 1.7 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let decades = (-9..=12).map(|power| 10_f64.powi(power));
                let all = decades.flat_map(|ten| factors.iter().map(move |factor| factor * ten));
                let inside = all.filter(|value| (self.low..=self.high).contains(&value.log10()));
                inside.map(|value| (value, short(value))).collect()
            }
            Form::Size => {
                let powers = (0..=20).map(|power| 4_f64.powi(power));
                let all: Vec<f64> = core::iter::once(0.0).chain(powers).collect();
                let inside = all.into_iter().filter(|value| {
                    (self.low - 1e-9..=self.high + 1e-9).contains(&warped(self.form, *value))
                });
                // One stands beside zero.
                inside.filter(|v| self.low >= 1.0 || *v != 1.0).map(|v| (v, tight(v))).collect()
            }
        }
    }
}

/// A round step of which there are four to eight.
fn step(range: f64) -> f64 {
    let ten = 10_f64.powf((range / 4.0).log10().floor());
    let fits = [5.0, 2.0].into_iter().find(|factor| range / (factor * ten) >= 4.0);
    fits.unwrap_or(1.0) * ten
}

/// A round number.
fn short(value: f64) -> String {
    let (value, unit) = match value {
        1e6.. => (value / 1e6, " M"),
        1e3.. => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let text = format!("{value:.3}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A size in few letters.
fn tight(bytes: f64) -> String {
    if bytes < 1024.0 {
        digits_of(bytes)
    } else {
        size(bytes).replace(" KiB", "K").replace(" MiB", "M")
    }
}

fn digits_of(bytes: f64) -> String {
    if bytes.fract() == 0.0 { format!("{bytes:.0}") } else { digits(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(scale: &Scale) -> Vec<String> {
        scale.ticks().into_iter().map(|tick| tick.1).collect()
    }

    #[test]
    fn linear_axes_begin_at_zero_and_keep_their_direction() {
        let scale = Scale::new(Form::Linear, &[30.0, 100.0], (200.0, 0.0));
        assert_eq!(scale.place(0.0), 200.0);
        assert!((scale.place(53.0) - 100.0).abs() < 1e-9, "{}", scale.place(53.0));
        assert_eq!(texts(&scale), ["0", "20", "40", "60", "80", "100"]);
    }

    #[test]
    fn a_decade_has_the_same_length_everywhere() {
        let scale = Scale::new(Form::Log, &[0.01, 10_000.0], (0.0, 600.0));
        let length = |from: f64| scale.place(10.0 * from) - scale.place(from);
        assert!((length(0.1) - length(100.0)).abs() < 1e-9);
        assert_eq!(texts(&scale), ["0.01", "0.1", "1", "10", "100", "1 k", "10 k"]);
        let narrow = Scale::new(Form::Log, &[1.0, 9.0], (0.0, 600.0));
        assert_eq!(texts(&narrow), ["1", "2", "5", "10"]);
    }

    #[test]
    fn sizes_have_a_place_for_zero_and_binary_ticks() {
        let scale = Scale::new(Form::Size, &[0.0, 4.0, 32_768.0], (0.0, 100.0));
        assert_eq!(scale.place(0.0), 0.0);
        assert!(scale.place(1.0) > 0.0 && scale.place(4.0) > scale.place(1.0));
        assert_eq!(scale.place(32_768.0), 100.0);
        assert_eq!(texts(&scale), ["0", "4", "16", "64", "256", "1K", "4K", "16K"]);
    }

    #[test]
    fn axes_without_usable_values_are_finite() {
        for form in [Form::Linear, Form::Log, Form::Size] {
            for values in [&[][..], &[0.0], &[5.0], &[f64::NAN, 3.0]] {
                let scale = Scale::new(form, values, (0.0, 10.0));
                assert!(scale.place(7.0).is_finite(), "{form:?} {values:?}");
                assert!(scale.ticks().len() < 50, "{form:?} {values:?}");
            }
        }
    }
}

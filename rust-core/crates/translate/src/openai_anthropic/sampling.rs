//! `temperature`, `top_p` and `top_k`.

use crate::Untranslatable;
use crate::constraints::{Constraint, has};
use crate::openai_anthropic::body::Body;
use crate::openai_anthropic::left_out::LeftOut;

/// Writes what the model takes of it.
pub(super) fn write(
    body: &Body<'_>,
    model: &str,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    if has(model, Constraint::DefaultSampling) {
        for (name, value) in [
            ("temperature", body.temperature),
            ("top_p", body.top_p),
            ("top_k", body.top_k),
        ] {
            left_out.leave_value(name, value)?;
        }
        return Ok(());
    }
    let invalid = |name: &'static str, range: &str| {
        Untranslatable::new(name, format!("{name} has to be a number {range}"))
    };
    if let Some(temperature) = body.temperature {
        let range = "between 0 and 2";
        let value: f64 = temperature
            .get()
            .parse()
            .map_err(|_| invalid("temperature", range))?;
        if !(0.0..=2.0).contains(&value) {
            return Err(invalid("temperature", range));
        }
        out.extend_from_slice(b",\"temperature\":");
        if value > 1.0 {
            // The provider's end of the scale.
            left_out
                .leave("temperature", || "temperature above 1".to_owned())
                .map_err(|refused| Untranslatable::new("temperature", refused.message))?;
            out.push(b'1');
        } else {
            out.extend_from_slice(temperature.get().as_bytes());
        }
    }
    for (name, value) in [("top_p", body.top_p), ("top_k", body.top_k)] {
        let Some(value) = value else { continue };
        let is_one_too_many = name == "top_p" && body.temperature.is_some();
        if is_one_too_many && has(model, Constraint::OneOfTemperatureAndTopP) {
            left_out.leave_value(name, Some(value))?;
            continue;
        }
        if value.get().parse::<f64>().is_err() {
            return Err(invalid(name, "of the provider's range"));
        }
        out.extend_from_slice(b",\"");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b"\":");
        out.extend_from_slice(value.get().as_bytes());
    }
    Ok(())
}

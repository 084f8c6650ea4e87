//! The section `telemetry`: the access log and traces of exchanges.

use proofgate_base::Error;
use serde::Deserialize;

/// The telemetry settings of the configuration.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TelemetryConfig {
    #[serde(default)]
    pub access_log: AccessLogMode,
    /// The settings of traces; `None`: no traces.
    #[serde(default)]
    pub traces: Option<TracesConfig>,
}

/// The settings of traces.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TracesConfig {
    /// The fraction of traces started by the gateway that are sampled, 0 to 1.
    pub ratio: f64,
    /// Whether requests to providers carry the trace context.
    pub propagate: bool,
}

/// The exchanges that have a line in the access log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum AccessLogMode {
    #[default]
    None,
    /// Exchanges that did not complete successfully.
    Errors,
    All,
}

/// The telemetry settings in the form that requests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TelemetrySettings {
    pub access_log: AccessLogMode,
    pub traces: Option<TraceSettings>,
}

/// The settings of traces in the form that requests need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceSettings {
    /// The number of sampled trace IDs among all 2^64.
    sampled: u128,
    pub propagate: bool,
}

impl TelemetrySettings {
    /// Checks and converts the settings.
    ///
    /// # Errors
    /// [`Error::Config`] if the ratio is not between 0 and 1.
    pub fn new(config: &TelemetryConfig) -> Result<Self, Error> {
        let traces = config.traces.as_ref().map(|traces| {
            if !(0.0..=1.0).contains(&traces.ratio) {
                return Err(Error::Config("the trace ratio is not between 0 and 1".into()));
            }
            Ok(TraceSettings {
                sampled: (traces.ratio * 2f64.powi(64)).round() as u128,
                propagate: traces.propagate,
            })
        });
        Ok(TelemetrySettings {
            access_log: config.access_log,
            traces: traces.transpose()?,
        })
    }

    /// Whether no exchange is logged or traced.
    pub fn is_off(&self) -> bool {
        self.access_log == AccessLogMode::None && self.traces.is_none()
    }
}

impl TraceSettings {
    /// Whether a trace that starts here is sampled. The decision uses the lower half of the trace
    /// ID, like OpenTelemetry's ratio samplers, so that samplers with the same ratio make the same
    /// decision.
    pub fn is_sampled(&self, trace: u128) -> bool {
        u128::from(trace as u64) < self.sampled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(ratio: f64) -> Option<TraceSettings> {
        let config = TelemetryConfig {
            traces: Some(TracesConfig {
                ratio,
                propagate: true,
            }),
            ..TelemetryConfig::default()
        };
        TelemetrySettings::new(&config).ok()?.traces
    }

    #[test]
    fn the_ratio_is_the_share_of_the_lower_halves_of_ids_that_are_sampled() {
        let high = 7u128 << 64;
        for (ratio, id, sampled) in [
            (0.0, 0, false),
            (1.0, u64::MAX, true),
            (0.5, (1 << 63) - 1, true),
            (0.5, 1 << 63, false),
            (0.25, 1 << 62, false),
        ] {
            let traces = traces(ratio).unwrap();
            assert_eq!(traces.is_sampled(high | u128::from(id)), sampled, "{ratio} {id}");
        }
    }

    #[test]
    fn what_is_no_ratio_is_refused() {
        for ratio in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(traces(ratio).is_none(), "{ratio}");
        }
    }
}

//! Hosts that a Prometheus knows, worst first: what `vnettop fleet` asks for, and the table made of the answers.

use std::collections::BTreeMap;

/// What is asked of each host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FleetFigure {
    /// 1 where the last scrape went well, else 0.
    Up,
    /// Payload of its tests, bits/s.
    Rate,
    /// Coefficient of variation of its most unsteady test.
    Variation,
    /// Share of its busiest core in softirqs.
    Softirq,
    /// Migrations of its threads, a second.
    Migrations,
    /// Migrations of its threads to another last-level cache, node or socket, a second.
    Far,
    /// Packets that its tests lost, a second.
    Losses,
}

impl FleetFigure {
    /// The query, over a window in Prometheus' words (`2m`). One element a host, by `instance`.
    #[must_use]
    pub fn query(self, window: &str) -> String {
        // Two jobs may scrape one host: it is shown once, with what the higher has.
        let highest = |what: String| format!("max by (instance) ({what})");
        let rate = |of: &str| format!("rate(vnettop_{of}[{window}])");
        let sum_of_rate = |of: &str| highest(format!("sum by (instance, job) ({})", rate(of)));
        match self {
            Self::Up => {
                let known = "last_over_time(vnettop_build_info[1d])";
                let up = highest(format!("up and on (instance, job) {known}"));
                format!("{up} or 0 * {}", highest(known.to_owned()))
            }
            Self::Rate => format!("8 * {}", sum_of_rate("test_bytes_total")),
            Self::Variation => highest(format!("max_over_time(vnettop_test_rate_variation_ratio[{window}])")),
            Self::Softirq => highest(format!("sum by (instance, job, core) ({})", rate("core_softirq_seconds_total"))),
            Self::Migrations => sum_of_rate("thread_migrations_total"),
            Self::Far => sum_of_rate("thread_migrations_total{class=~\"node|socket\"}"),
            Self::Losses => sum_of_rate("test_lost_packets_total"),
        }
    }
}

/// One host, by what Prometheus calls it.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetHost {
    /// Its label `instance`.
    pub instance: String,
    /// What is known of it.
    pub figures: BTreeMap<FleetFigure, f64>,
}

/// What decides which host is worse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FleetOrder {
    /// Losses, then variation, then migrations.
    #[default]
    Worst,
    /// The least steady first.
    Variation,
    /// Most migrations first.
    Migrations,
    /// Most losses first.
    Losses,
    /// The fastest first.
    Rate,
    /// The busiest core first.
    Softirq,
}

/// Losses below this are none: one packet in a quarter of an hour, /s.
const LEAST_LOSSES: f64 = 0.001;
/// Rates that vary less are steady.
const STEADY: f64 = 0.05;

/// The hosts of all answers, each an instance with its value, in order. Who is down comes first where the worst do.
#[must_use]
pub fn hosts(answers: impl IntoIterator<Item = (FleetFigure, String, f64)>, order: FleetOrder) -> Vec<FleetHost> {
    let mut hosts: BTreeMap<String, BTreeMap<FleetFigure, f64>> = BTreeMap::new();
    for (figure, instance, value) in answers {
        hosts.entry(instance).or_default().insert(figure, value);
    }
    let mut hosts: Vec<FleetHost> =
        hosts.into_iter().map(|(instance, figures)| FleetHost { instance, figures }).collect();
    hosts.sort_by(|one, other| {
        let keys = one.badness(order).into_iter().zip(other.badness(order));
        let first = keys.map(|(one, other)| other.total_cmp(&one)).find(|order| order.is_ne());
        first.unwrap_or_else(|| one.instance.cmp(&other.instance))
    });
    hosts
}

impl FleetHost {
    /// A figure of it; none where Prometheus has none.
    #[must_use]
    pub fn figure(&self, figure: FleetFigure) -> Option<f64> {
        self.figures.get(&figure).copied()
    }

    /// It answered when it was scraped last.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.figure(FleetFigure::Up).is_some_and(|up| up > 0.0)
    }

    /// What makes it worse than another, most important first. What is not known is no reason.
    fn badness(&self, order: FleetOrder) -> [f64; 4] {
        let known = |figure| self.figure(figure).unwrap_or(-1.0);
        let of_note = |figure, least: f64| Some(known(figure)).filter(|value| *value >= least).unwrap_or_default();
        let by = |figure| [known(figure), 0.0, 0.0, 0.0];
        match order {
            FleetOrder::Worst => [
                f64::from(u8::from(!self.is_up())),
                of_note(FleetFigure::Losses, LEAST_LOSSES),
                of_note(FleetFigure::Variation, STEADY),
                known(FleetFigure::Migrations),
            ],
            FleetOrder::Variation => by(FleetFigure::Variation),
            FleetOrder::Migrations => by(FleetFigure::Migrations),
            FleetOrder::Losses => by(FleetFigure::Losses),
            FleetOrder::Rate => by(FleetFigure::Rate),
            FleetOrder::Softirq => by(FleetFigure::Softirq),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(by: FleetOrder) -> Vec<String> {
        let of = |instance: &str, figures: [f64; 4]| {
            let kinds = [FleetFigure::Up, FleetFigure::Losses, FleetFigure::Variation, FleetFigure::Migrations];
            let instance = instance.to_owned();
            kinds.into_iter().zip(figures).map(move |(kind, value)| (kind, instance.clone(), value)).collect::<Vec<_>>()
        };
        let answers = [
            of("steady", [1.0, 0.0, 0.01, 0.2]),
            of("loses", [1.0, 3.0, 0.02, 0.1]),
            of("swings", [1.0, 0.0, 0.4, 90.0]),
            of("down", [0.0, 0.0, 0.0, 0.0]),
            of("moves", [1.0, 0.0, 0.02, 30.0]),
        ];
        let mut answers: Vec<_> = answers.into_iter().flatten().collect();
        answers.push((FleetFigure::Up, "new".to_owned(), 1.0));
        hosts(answers, by).into_iter().map(|host| host.instance).collect()
    }

    #[test]
    fn who_is_down_or_loses_packets_comes_before_who_swings_or_moves() {
        assert_eq!(order(FleetOrder::Worst), ["down", "loses", "swings", "moves", "steady", "new"]);
        assert_eq!(order(FleetOrder::Migrations)[..2], ["swings", "moves"]);
    }
}

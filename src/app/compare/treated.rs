//! What is pinned and steered during the warm-up of a measurement, so that it stands for all of what is measured, and what became of it.

use crate::app::phase_schedule::{PhaseSchedule, Rule, Wish};
use crate::derive::Metrics;
use crate::derive::placement::{at_receivers, propose, unsteerable, with_steers};
use crate::effect::{Outcome, PinController, PinRequest};
use crate::sample::{Event, SetOnLink, SteerRequest, ThreadOnCore, Treatment, Word};
use crate::source::now_ns;
use crate::update::requests;

/// How long the busy threads of a load are looked at before they are pinned, ns: all of them are busy by then.
const LOOK_NS: u64 = 400_000_000;

/// A load that gets a treatment.
pub(super) struct Treated {
    treatment: Treatment,
    schedule: PhaseSchedule<'static>,
    /// When the warm-up is over.
    warm_ns: u64,
    /// When the masks and the settings were set.
    done_ns: Option<u64>,
    pub(super) pins: Vec<ThreadOnCore>,
    pub(super) steers: Vec<SetOnLink>,
    /// Why nothing was pinned or steered, as it was last, a sentence.
    why: Option<String>,
    /// There is nothing to steer, so far: why.
    unsteerable: Option<&'static str>,
    /// The newest sample.
    at_ns: u64,
}

/// What is to be done.
type AskedTreatment = (Vec<PinRequest>, Vec<SteerRequest>);

impl Treated {
    pub(super) fn new(treatment: Treatment, warm_ns: u64) -> Self {
        let rule = if treatment == Treatment::Unpinned { Rule::Never } else { Rule::Pinned(LOOK_NS) };
        let (pins, steers) = (Vec::new(), Vec::new());
        let schedule = PhaseSchedule::new(rule, &[]);
        Self { treatment, schedule, warm_ns, done_ns: None, pins, steers, why: None, unsteerable: None, at_ns: 0 }
    }

    /// Does what is due after a sample.
    pub(super) fn next(&mut self, metrics: &Metrics, controller: &mut PinController) -> Vec<Event> {
        self.at_ns = metrics.machine.at_ns;
        let asked = match self.schedule.next(metrics) {
            Some(Wish::Pin(pins)) => self.asked(metrics, Ok(pins)),
            Some(Wish::Refuse(why)) => self.asked(metrics, Err(why)),
            _ => return Vec::new(),
        };
        match asked {
            Ok(Some((pins, steers))) => self.treat(controller, &pins, &steers),
            Ok(None) => Vec::new(),
            Err(why) => {
                self.why = Some(format!("nothing was pinned: {why}"));
                Vec::new()
            }
        }
    }

    /// What the treatment asks for once the busy threads were looked at; `None` where there is nothing to steer yet.
    fn asked(
        &mut self,
        metrics: &Metrics,
        pins: Result<Vec<PinRequest>, String>,
    ) -> Result<Option<AskedTreatment>, String> {
        let test = &metrics.subject;
        let asked = match self.treatment {
            Treatment::Unpinned | Treatment::Pinned => return Ok(Some((pins?, Vec::new()))),
            Treatment::PinnedAndSteered => {
                // Both of one sample: the steers are for the cores of these pins.
                let proposal = with_steers(test, Ok(propose(test)?))?;
                let pins = requests(&proposal);
                let on = proposal.steers.into_iter().filter(|steer| steer.is_on);
                (pins, on.map(|steer| steer.request).collect())
            }
            // That no thread can be pinned is nothing to it.
            Treatment::Steered => (Vec::new(), at_receivers(test)),
        };
        self.unsteerable = asked.1.is_empty().then(|| unsteerable(test));
        Ok(self.unsteerable.is_none().then_some(asked))
    }

    fn treat(&mut self, controller: &mut PinController, pins: &[PinRequest], steers: &[SteerRequest]) -> Vec<Event> {
        self.schedule.stop();
        let warning = |outcome: &Outcome, what: &str| {
            let line = outcome.lines.iter().find(|line| line.warning)?;
            Some(format!("nothing was {what}: {}", line.text))
        };
        let mut events = Vec::new();
        self.why = None;
        if self.treatment.pins() {
            let pinned = controller.pin(pins);
            self.why = warning(&pinned, "pinned");
            events.extend(pinned.events);
        }
        let steered = controller.steer(steers);
        self.why = self.why.take().or(warning(&steered, "steered"));
        events.extend(steered.events);
        self.done_ns = Some(now_ns());
        let on =
            |request: &PinRequest| Some(ThreadOnCore { thread: request.label.clone(), core: request.cores.first()? });
        self.pins = pins.iter().filter_map(on).collect();
        let set = |request: &SteerRequest| SetOnLink {
            link: request.name.clone(),
            setting: request.setting.word().to_owned(),
            value: request.value.to_text(),
        };
        self.steers = steers.iter().map(set).collect();
        events
    }

    /// Nothing was there to steer until now.
    pub(super) fn is_unsteerable(&self) -> bool {
        self.unsteerable.is_some() && self.done_ns.is_none() && self.at_ns >= self.warm_ns
    }

    /// Why it is no use to go on: the warm-up is over and there is nothing to steer.
    pub(super) fn in_vain(&self) -> Option<String> {
        self.unsteerable.filter(|_| self.is_unsteerable()).map(|why| format!("no steer is proposed: {why}"))
    }

    /// Why what was measured is not of the treatment; none where it is.
    pub(super) fn failure(&self) -> Option<String> {
        let (done, who) = match self.treatment {
            Treatment::Unpinned => return None,
            Treatment::Pinned => ("pinned", "the threads were pinned"),
            Treatment::PinnedAndSteered => ("pinned", "the threads were pinned and steered"),
            Treatment::Steered => ("steered", "the packets were steered"),
        };
        match (self.done_ns, &self.why) {
            (_, Some(why)) => Some(why.clone()),
            (None, None) => Some(format!("nothing was {done}: no thread of the load was busy")),
            (Some(done_ns), None) if done_ns > self.warm_ns => {
                Some(format!("{who} after the warm-up: use a longer --warm-up"))
            }
            _ => None,
        }
    }
}

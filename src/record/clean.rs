//! Text in a recording is outside input like the names of links: made harmless where it enters.

use crate::sample::{Event, Host, Kind, LinkFacts, Problem, ThreadSample};
use crate::text;
use std::sync::Arc;

fn clean(word: &mut String) {
    *word = text::clean(word.as_bytes());
}

pub(super) fn host(mut host: Arc<Host>) -> Arc<Host> {
    let Host { name, kernel, arch, policy } = Arc::make_mut(&mut host);
    [name, kernel, arch].into_iter().chain(policy.governor.as_mut()).for_each(clean);
    host
}

pub(super) fn links(mut links: Arc<Vec<Arc<LinkFacts>>>) -> Arc<Vec<Arc<LinkFacts>>> {
    for link in Arc::make_mut(&mut links) {
        let link = Arc::make_mut(link);
        clean(&mut link.name);
        for word in [&mut link.alias, &mut link.slave_kind].into_iter().flatten() {
            clean(word);
        }
        if let Kind::Other(word) = &mut link.kind {
            clean(word);
        }
    }
    links
}

pub(super) fn problems(mut problems: Arc<Vec<Problem>>) -> Arc<Vec<Problem>> {
    for Problem { source, text } in Arc::make_mut(&mut problems) {
        [source, text].into_iter().for_each(clean);
    }
    problems
}

pub(super) fn threads(mut threads: Vec<ThreadSample>) -> Vec<ThreadSample> {
    for thread in &mut threads {
        clean(&mut thread.name);
    }
    threads
}

pub(super) fn event(mut event: Event) -> Event {
    if let Event::RunAsked(asked) = &mut event {
        asked.command.iter_mut().chain(&mut asked.watch).for_each(clean);
    }
    event
}

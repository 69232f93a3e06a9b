package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// chronyLines is what a sound chrony.conf holds.
const chronyLines = "pool 2.pool.ntp.org iburst maxsources 4\nmakestep 1 3\nmaxslewrate 500\nrtcsync"

func kernelSync(f *Facts) verdict {
	k := f.Kernel
	switch {
	case !k.Known:
		return unknown("the kernel does not tell whether its clock is synchronised: it is not Linux, or a sandbox forbids adjtimex")
	case k.Synchronised:
		return ok("the kernel says that its clock is synchronised, at a frequency correction of %.3g ppm", k.FreqPPM)
	}
	if c := f.Config.Chrony; c != nil && !c.RTCSync && f.running("chronyd") != nil {
		return verdict{Warning,
			"the kernel says that its clock is not synchronised, and chronyd runs without rtcsync, so it never tells the kernel: " +
				"every program that asks for the error gets 16 s, the most there is",
			"rtcsync   # in " + c.File}
	}
	where := "install chrony, with these lines in chrony.conf:"
	if f.Container.Kind != "" {
		where = "on the host, which owns the clock of this container, install chrony with these lines in chrony.conf:"
	}
	return verdict{Fail,
		"the kernel says that nobody synchronises its clock: the error has no bound, and grows by up to 43 s a day at the 500 ppm the kernel allows for",
		where + "\n" + chronyLines}
}

// boundWarning is the error of a synchronised clock that is worth a look; boundFail is where
// guarded time calls a step critical.
const (
	boundWarning = 100 * time.Millisecond
	boundFail    = time.Second
)

func kernelErrorBound(f *Facts) verdict {
	k := f.Kernel
	if !k.Known || !k.Synchronised {
		return unknown("without synchronisation the kernel's bound says nothing")
	}
	detail := fmt.Sprintf("the kernel bounds the error by %s: enough to stand in for a store for limits up to %.3g/s (a tenth of the emission interval)",
		span(k.MaxError), 0.1/max(k.MaxError, time.Microsecond).Seconds())
	fix := "server TIME-SERVER-IN-YOUR-NETWORK iburst minpoll 4 maxpoll 6   # in chrony.conf: the bound is mostly half the way to the server"
	switch {
	case k.MaxError > boundFail:
		return verdict{Fail, detail + "; a bound beyond 1 s means that the last answer of a time server is long ago", fix}
	case k.MaxError > boundWarning:
		return verdict{Warning, detail, fix}
	}
	return ok("%s", detail)
}

// Clock sources whose reading costs a system call or worse, and those too coarse to limit by.
var (
	slowSources   = []string{"hpet", "acpi_pm", "xen", "pit"}
	coarseSources = []string{"jiffies", "refined-jiffies"}
)

func clockSource(f *Facts) verdict {
	s := f.ClockSource
	list := strings.Join(f.ClockSources, ", ")
	fix := "clocksource=tsc   # on the kernel command line, if the machine's tsc is stable"
	for _, good := range []string{"tsc", "kvm-clock", "arch_sys_counter"} {
		if slices.Contains(f.ClockSources, good) {
			fix = fmt.Sprintf("echo %s > %scurrent_clocksource   # now\nclocksource=%s   # on the kernel command line, to keep it", good, clockSources, good)
			break
		}
	}
	switch {
	case s == "":
		return unknown("the kernel does not tell by what it counts time (%scurrent_clocksource)", clockSources)
	case slices.Contains(coarseSources, s):
		return verdict{Fail, fmt.Sprintf("the clock counts %s, in steps of 1 to 10 ms; there is: %s", s, list), fix}
	case slices.Contains(slowSources, s):
		return verdict{Warning, fmt.Sprintf("the clock counts by %s, which every reading asks the kernel and the hardware for: about 1 µs instead of 50 ns, on each decision; there is: %s", s, list), fix}
	}
	return ok("the clock counts by %s", s)
}

func watchedSteps(f *Facts) verdict {
	w := f.Watch
	switch {
	case w == nil:
		return unknown("the clocks were not watched; give --watch a duration")
	case w.Failed != "":
		return unknown("the clocks could not be watched: %s", w.Failed)
	}
	n := w.Tally.StepsForward + w.Tally.StepsBackward
	if n == 0 {
		if w.Tally.Checks > 0 && w.Tally.Unclear*2 > w.Tally.Checks {
			return unknown("in %s of watching, %d of %d looks at the clocks were too slow to tell: this process does not get enough of a processor",
				span(w.For), w.Tally.Unclear, w.Tally.Checks)
		}
		return ok("no step of 1 ms or more in %s of watching; a longer --watch sees more", span(w.For))
	}
	var sizes []string
	worst := time.Duration(0)
	for _, e := range w.Events {
		if e.Kind == "step" || e.Kind == "leap" {
			worst = max(worst, e.Size.Abs())
			if len(sizes) < maxNamed {
				sizes = append(sizes, fmt.Sprintf("%+.4g ms", float64(e.Size)/1e6))
			}
		}
	}
	v := verdict{Warning, fmt.Sprintf("the wall clock was set %d times in %s: %s. A limit of 100/s kept by the wall clock would have been wrong by up to %d requests",
		n, span(w.For), strings.Join(sizes, ", "), int64(worst.Seconds()*100+0.999)),
		"find out who sets it: more than one time daemon, a cron job with ntpdate or date -s, the tools of the hypervisor"}
	if worst >= 100*time.Millisecond {
		v.status = Fail
	}
	return v
}

func watchedSuspends(f *Facts) verdict {
	w := f.Watch
	switch {
	case w == nil || w.Failed != "":
		return unknown("the clocks were not watched")
	case !w.Boot:
		return unknown("this platform has no clock by which a suspend can be told from a step")
	case w.Tally.Suspends == 0:
		return ok("no suspend in %s of watching", span(w.For))
	}
	return verdict{Warning, fmt.Sprintf("the machine was suspended %d times, %s in all, in %s of watching: to limits by the monotonic clock that time did not pass, until the guard credits it",
		w.Tally.Suspends, span(w.Tally.Suspended), span(w.For)),
		"systemctl mask sleep.target suspend.target hibernate.target   # a server does not sleep\nor keep the hypervisor from pausing this guest"}
}

package doctor

import (
	"fmt"
	"strings"
	"time"
)

// use is what is known about a daemon that has a configuration.
type use int

const (
	runs     use = iota
	mayRun       // its processes cannot be seen: the host's, of a container
	idle         // it does not run
	unseated     // another daemon runs
)

func (f *Facts) use(daemon string) use {
	switch {
	case f.running(daemon) != nil:
		return runs
	case f.running("chronyd") != nil || f.running("ntpd") != nil || f.running("systemd-timesyncd") != nil:
		return unseated
	case f.Container.Kind != "" || !f.ProcessesKnown:
		return mayRun
	}
	return idle
}

// tempered is a verdict about the configuration of a daemon, as far as the daemon matters:
// one that does not run is a risk and no fault, one that another has replaced is neither.
func (f *Facts) tempered(daemon string, v verdict) verdict {
	if !v.status.Finding() {
		return v
	}
	switch f.use(daemon) {
	case runs, mayRun:
	case idle:
		v.status, v.detail = Warning, v.detail+" ("+daemon+" does not run now)"
	case unseated:
		v = ok("%s (%s does not run and another daemon does)", v.detail, daemon)
	}
	return v
}

func daemonMayStep(f *Facts) verdict {
	var vs []verdict
	if c := f.Config.Chrony; c != nil {
		vs = append(vs, f.tempered("chronyd", chronySteps(c)))
	}
	if c := f.Config.Ntpd; c != nil {
		vs = append(vs, f.tempered("ntpd", ntpdSteps(c)))
	}
	if f.running("systemd-timesyncd") != nil {
		vs = append(vs, verdict{Warning,
			"systemd-timesyncd steps the clock whenever it is off by more than 0.4 s, at any time: a limit of 100/s kept by the wall clock then gains or loses at least 40 requests at once",
			"apt-get install chrony   # it replaces systemd-timesyncd, which cannot be told not to step\nand in chrony.conf:\n" + chronyLines})
	}
	return all(f.noDaemon(), vs...)
}

// incomplete is a verdict about something that is not in the files that could be read.
func incomplete(file, what string) verdict {
	return unknown("%s includes a file that was not read, which may hold %s: see daemon-config", file, what)
}

func (f *Facts) noDaemon() verdict {
	if f.running("chronyd") != nil || f.running("ntpd") != nil {
		return unknown("a time daemon runs whose configuration was not found or not read")
	}
	return unknown("no time daemon was found, nor a configuration of one")
}

func chronySteps(c *Chrony) verdict {
	m := c.Makestep
	const fix = "makestep 1 3   # steps only in the first three updates after the start, and then only more than 1 s"
	switch {
	case m.File == "" && c.Unread:
		return incomplete(c.File, "makestep")
	case m.File == "":
		return verdict{Warning,
			fmt.Sprintf("%s has no makestep, so chronyd never steps: an error of an hour at the start stands for %s, at its limit of %.0f ppm",
				c.File, slewing(time.Hour, max(c.MaxSlewPPM, 1)), c.MaxSlewPPM),
			fix + ", in " + c.File}
	case m.Limit < 0:
		return verdict{Fail,
			fmt.Sprintf("%s: makestep %g %d lets chronyd step the clock at any time, for ever, whenever it is off by more than %g s: a negative number means no limit. "+
				"A step of %g s gives a limit of 100/s kept by the wall clock up to %.0f requests too many or too few at once",
				m.Place, m.Threshold, m.Limit, m.Threshold, max(m.Threshold, 0.1), max(m.Threshold, 0.1)*100),
			fmt.Sprintf("%s: write instead\n%s", m.Place, fix)}
	case m.Limit > 10:
		return verdict{Warning,
			fmt.Sprintf("%s: makestep %g %d lets chronyd step in its first %d updates, about %s at 64 s each, long after programs have started",
				m.Place, m.Threshold, m.Limit, m.Limit, (time.Duration(m.Limit) * 64 * time.Second).Round(time.Minute)),
			fmt.Sprintf("%s: write instead\n%s", m.Place, fix)}
	}
	return ok("%s: makestep %g %d: chronyd steps only in its first %d updates", m.Place, m.Threshold, m.Limit, m.Limit)
}

// ntpdLines step once before the daemon runs and never again: a threshold of its own for
// the start is something ntpd does not have.
const ntpdLines = "ExecStartPre=/usr/sbin/ntpd -gq   # in the unit of ntpd: steps once, at the start\n" +
	"NTPD_OPTS=\"-g -x\"   # in /etc/default/ntp: then slews whatever is below 600 s\n" +
	"or use chrony, which tells the start apart: makestep 1 3"

func ntpdSteps(c *Ntpd) verdict {
	switch {
	case c.Step == 0:
		return verdict{Warning,
			fmt.Sprintf("%s: tinker step 0 forbids every step, the one at the start too: an error of an hour then stands for %s at 500 ppm, and the kernel's discipline is off",
				c.StepAt, slewing(time.Hour, 500)),
			ntpdLines}
	case c.StepAt.File == "" && c.Unread:
		return incomplete(c.File, "tinker step")
	case c.StepAt.File == "":
		return verdict{Warning,
			fmt.Sprintf("%s does not say when to step, so ntpd steps at any time once the clock has been off by more than 128 ms for 5 minutes: "+
				"13 requests of a limit of 100/s kept by the wall clock", c.File),
			ntpdLines}
	case c.Step < ntpdStepX:
		return verdict{Warning,
			fmt.Sprintf("%s: ntpd steps at any time once the clock is off by more than %g s: %.0f requests of a limit of 100/s kept by the wall clock", c.StepAt, c.Step, c.Step*100),
			ntpdLines}
	}
	return ok("%s: ntpd steps only if the clock is off by more than %g s", c.StepAt, c.Step)
}

// kernelSlewPPM is the most that the kernel's own discipline slews.
const kernelSlewPPM = 500

func daemonSlewRate(f *Facts) verdict {
	c := f.Config.Chrony
	if c == nil {
		if f.running("ntpd") != nil || f.running("systemd-timesyncd") != nil {
			return ok("the daemon slews by the kernel, at 500 ppm at most: a limit of 1000/s is off by half a request per second meanwhile")
		}
		return f.noDaemon()
	}
	if c.MaxSlewPPM <= kernelSlewPPM {
		return ok("%s: chronyd slews at %g ppm at most", c.SlewAt, c.MaxSlewPPM)
	}
	if c.SlewAt.File == "" && c.Unread {
		return incomplete(c.File, "maxslewrate")
	}
	where, says := "add to "+c.File, c.File+" has no maxslewrate"
	if c.SlewAt.File != "" {
		where, says = c.SlewAt.String()+": write instead", fmt.Sprintf("%s: maxslewrate %g", c.SlewAt, c.MaxSlewPPM)
	}
	percent := c.MaxSlewPPM / 1e4
	return f.tempered("chronyd", verdict{Warning,
		fmt.Sprintf("%s, so chronyd may run the clock %.2g %% too fast or too slow while it slews, and the monotonic clock with it: a limit of 1000/s admits %.0f to %.0f a second meanwhile",
			says, percent, 1000*(1-percent/100), 1000*(1+percent/100)),
		where + "\nmaxslewrate 500   # 0.05 %"})
}

// enough is how many sources it takes to find out which one is wrong.
const enough = 3

func timeSources(f *Facts) verdict {
	var vs []verdict
	judge := func(daemon, file string, sources []TimeSource, unread bool) {
		v := sourceCount(daemon, file, sources)
		if unread && v.status.Finding() {
			v = incomplete(file, "further sources")
		}
		vs = append(vs, f.tempered(daemon, v))
	}
	if c := f.Config.Chrony; c != nil {
		judge("chronyd", c.File, c.Sources, c.Unread)
	}
	if c := f.Config.Ntpd; c != nil {
		judge("ntpd", c.File, c.Sources, c.Unread)
	}
	if f.running("systemd-timesyncd") != nil {
		vs = append(vs, verdict{Warning,
			"systemd-timesyncd follows one server at a time and compares it with no other: if that one is wrong by an hour, so is this host",
			"apt-get install chrony   # compares its sources and outvotes the wrong one\nand in chrony.conf:\n" + chronyLines})
	}
	return all(f.noDaemon(), vs...)
}

func sourceCount(daemon, file string, sources []TimeSource) verdict {
	n, seen := 0, map[string]bool{}
	var names []string
	for _, s := range sources {
		if id := strings.ToLower(s.Name); !seen[id] {
			seen[id] = true
			n += s.Count
			names = append(names, s.Kind+" "+s.Name)
		}
	}
	if n >= enough {
		return ok("%s has up to %d time sources: %s", daemon, n, strings.Join(names[:min(len(names), maxNamed)], ", "))
	}
	const fix = "pool 2.pool.ntp.org iburst maxsources 4   # four servers of different operators\nor three server lines of different operators"
	why := "with one, nobody notices when it is wrong"
	switch n {
	case 0:
		return verdict{Fail, fmt.Sprintf("%s names no time source: %s corrects nothing", file, daemon), fix}
	case 2:
		why = "with two, nobody can tell which one is wrong when they differ"
	}
	return verdict{Warning, fmt.Sprintf("%s has %d of the 3 independent time sources it takes to outvote a wrong one (%s): %s",
		file, n, strings.Join(names, ", "), why), fix}
}

// Sources names what the time daemon of this host is told to follow, for a fleet to compare.
// It is empty where that cannot be known, as in a container whose host has the daemon.
func (f *Facts) Sources() []string {
	var list []TimeSource
	switch c := f.Config; {
	case c.Chrony != nil && f.use("chronyd") == runs:
		list = c.Chrony.Sources
	case c.Ntpd != nil && f.use("ntpd") == runs:
		list = c.Ntpd.Sources
	case c.Timesyncd != nil && f.use("systemd-timesyncd") == runs:
		list = c.Timesyncd.Sources
	}
	var names []string
	seen := map[string]bool{}
	for _, s := range list {
		if name := s.Kind + " " + s.Name; !seen[name] && len(names) < 16 {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

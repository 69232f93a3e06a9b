package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement-io/escapement/clock"
)

var noFleet = unknown("no instances were named; give --fleet the URLs of their admin listeners")

// reached are the instances that answered.
func (f *Facts) reached() []Instance {
	var list []Instance
	for _, i := range f.Fleet {
		if i.Failed == "" {
			list = append(list, i)
		}
	}
	return list
}

func fleetReach(f *Facts) verdict {
	var vs []verdict
	for _, i := range f.Fleet {
		if i.Failed != "" {
			vs = append(vs, verdict{Fail, fmt.Sprintf("%s: %s", i.URL, i.Failed),
				"admin: HOST:PORT   # in the gateway's configuration: an address this host can reach, behind a firewall"})
		}
	}
	switch {
	case len(f.Fleet) == 0:
		return noFleet
	case len(vs) == 0:
		return ok("%d of %d instances answered", len(f.Fleet), len(f.Fleet))
	}
	return all(noFleet, vs...)
}

func fleetState(f *Facts) verdict {
	list := f.reached()
	if len(list) == 0 {
		return noFleetOr(f)
	}
	var vs []verdict
	stepped := []string{}
	for _, i := range list {
		switch i.Clock.Bound.State {
		case clock.Synchronised, clock.Slewing:
		case clock.Holdover:
			vs = append(vs, verdict{Warning, fmt.Sprintf("%s: holdover: its references no longer agree; its bound is %s and grows", i.URL, span(i.Clock.ErrorBound)),
				"run escapement doctor on it"})
		case clock.Unknown, clock.Disrupted:
			fallthrough
		default:
			vs = append(vs, verdict{Warning, fmt.Sprintf("%s: %.20s: nothing bounds the error of its clock", i.URL, i.Clock.Bound.State), "run escapement doctor on it"})
		}
		if n := i.steps(); n > 0 && len(stepped) < maxNamed {
			stepped = append(stepped, fmt.Sprintf("%s %d times, the last by %s", i.URL, n, span(i.Clock.Tally.LastStep)))
		}
	}
	note := ""
	if len(stepped) > 0 {
		note = "; stepped since the start: " + strings.Join(stepped, ", ")
	}
	v := all(ok("all %d instances know the error of their clocks", len(list)), vs...)
	v.detail += note
	return v
}

func noFleetOr(f *Facts) verdict {
	if len(f.Fleet) > 0 {
		return unknown("no instance answered")
	}
	return noFleet
}

func fleetOffset(f *Facts) verdict {
	list := f.reached()
	switch len(list) {
	case 0:
		return noFleetOr(f)
	case 1:
		return unknown("only one instance answered: there is nothing to compare it with")
	}
	first := slices.MinFunc(list, func(a, b Instance) int { return int(a.Offset - b.Offset) })
	last := slices.MaxFunc(list, func(a, b Instance) int { return int(a.Offset - b.Offset) })
	spread, err := last.Offset-first.Offset, first.Error+last.Error
	detail := fmt.Sprintf("%s is %s ahead of %s, ± %s: the widest of %d instances", last.URL, exact(spread), first.URL, exact(err), len(list))
	switch clock.Judge(spread, err, tolerated) {
	case clock.Good:
		return ok("%s", detail)
	case clock.Uncertain:
		return unknown("%s; whether that is beyond %s cannot be told over this network", detail, span(tolerated))
	case clock.Bad:
	}
	return verdict{Fail,
		fmt.Sprintf("%s. Windows kept by their own clocks begin that far apart: around each boundary of a window of 1 s, up to %.0f %% of its limit is admitted twice",
			detail, min(100, spread.Seconds()*100)),
		"chronyc makestep   # once, now, on the instance whose offset differs from the others (see the table)\nand give all instances the same time sources, at least three"}
}

// sharedSource is the one source that all instances have and none has another beside, or
// nothing; known is false if an instance does not say what it follows.
func sharedSource(list []Instance) (name string, known bool) {
	names := map[string]bool{}
	for _, i := range list {
		if len(i.Sources) == 0 {
			return "", false
		}
		for _, s := range i.Sources {
			names[s] = true
			name = s
		}
	}
	if len(names) != 1 || strings.HasPrefix(name, "pool ") {
		return "", true
	}
	return name, true
}

func fleetSource(f *Facts) verdict {
	list := f.reached()
	boots := map[string]bool{}
	machines := 0
	for _, i := range list {
		if i.BootID == "" || !boots[i.BootID] {
			machines++
		}
		boots[i.BootID] = true
	}
	switch {
	case len(list) == 0:
		return noFleetOr(f)
	case machines < 2:
		return unknown("all instances that answered run on one machine and share its clock")
	}
	name, known := sharedSource(list)
	switch {
	case !known:
		return unknown("not every instance knows what its time daemon follows: in a container it cannot; run doctor on the hosts, or give the gateways --ntp")
	case name == "":
		return ok("%d machines do not depend on one time source alone", machines)
	}
	return verdict{Warning,
		fmt.Sprintf("all %d machines take their time from %s alone: if it is wrong by %s, all are, and comparing them shows nothing", machines, name, time.Hour),
		"server SECOND-SERVER iburst\nserver THIRD-SERVER iburst   # in chrony.conf of each, of other operators; three outvote one"}
}

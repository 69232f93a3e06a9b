package doctor

import (
	"fmt"
	"strings"
)

func container(f *Facts) verdict {
	c := f.Container
	switch {
	case c.Kind == "" && !c.Known:
		return unknown("whether this is a container cannot be told here")
	case c.Kind == "":
		return ok("no sign of a container")
	}
	detail := fmt.Sprintf("a container (%s): it shares the wall clock of its host, and time daemons of the host cannot be seen from here; run doctor on the host as well", c.Kind)
	if c.Quota != "" {
		detail += fmt.Sprintf(". It may use %s: once that is spent it stands still for up to 100 ms, which looks like a jump to whoever compares two readings", c.Quota)
	}
	if c.MaySetClock {
		return verdict{Warning, detail + ". It may set the clock: date -s in here steps the clock of every container on the host",
			"--cap-drop SYS_TIME   # docker, podman\nsecurityContext: {capabilities: {drop: [SYS_TIME]}}   # Kubernetes"}
	}
	return ok("%s", detail)
}

func virtualMachine(f *Facts) verdict {
	m := f.Machine
	switch {
	case m.Hypervisor == "" && !m.Known:
		return unknown("whether this is a virtual machine cannot be told here")
	case m.Hypervisor == "":
		return ok("no sign of a hypervisor")
	}
	detail := fmt.Sprintf("a virtual machine (%s): after a pause, a snapshot or a live migration its wall clock is behind by as long as that took, and is then stepped", m.Hypervisor)
	if len(m.HostClocks) > 0 {
		detail += fmt.Sprintf(". The host's clock can be read without a network: refclock PHC %s poll 2 in chrony.conf brings the error below 0.1 ms, if the host's own clock is right", m.HostClocks[0])
	}
	return ok("%s", detail)
}

// exclusive are the daemons that each think the clock is theirs.
var exclusive = []string{"chronyd", "ntpd", "systemd-timesyncd", "vmtoolsd", "VBoxService"}

func timeDaemon(f *Facts) verdict {
	var names, rivals []string
	for _, p := range f.Daemons {
		names = append(names, p.Daemon)
		for _, e := range exclusive {
			// The tools of a hypervisor set the clock only if told to.
			if p.Daemon == e && e != "vmtoolsd" && e != "VBoxService" {
				rivals = append(rivals, p.Daemon)
			}
		}
	}
	switch {
	case len(rivals) > 1:
		return verdict{Fail, fmt.Sprintf("%s run at once and undo each other's corrections", strings.Join(rivals, " and ")),
			"systemctl disable --now " + strings.Join(without(rivals, rivals[0]), " ") + "   # keep one"}
	case len(rivals) == 1 && f.Container.Kind != "" && !f.Container.MaySetClock:
		return unknown("%s runs in this container, which may not set the clock; what the host runs cannot be seen", rivals[0])
	case len(rivals) == 1:
		return ok("%s runs", strings.Join(names, ", "))
	case f.running("phc2sys") != nil:
		return ok("phc2sys runs and follows a hardware clock")
	case f.Container.Kind != "":
		return unknown("no time daemon runs in this container; what the host runs cannot be seen from here")
	case !f.ProcessesKnown:
		return unknown("the running processes cannot be seen here")
	}
	return verdict{Fail, "no time daemon runs: nobody corrects this clock, which typically drifts by 1 to 5 s a day",
		"install chrony, with these lines in chrony.conf:\n" + chronyLines}
}

func without(list []string, name string) []string {
	var out []string
	for _, s := range list {
		if s != name {
			out = append(out, s)
		}
	}
	return out
}

func daemonConfig(f *Facts) verdict {
	c := f.Config
	if len(c.Problems) > 0 {
		return verdict{Warning, strings.Join(c.Problems, "\n"), "correct these lines; until then this report may miss what they say"}
	}
	var files []string
	if c.Chrony != nil {
		files = append(files, c.Chrony.File)
	}
	if c.Ntpd != nil {
		files = append(files, c.Ntpd.File)
	}
	if c.Timesyncd != nil {
		files = append(files, c.Timesyncd.File)
	}
	if len(files) == 0 {
		return unknown("no configuration of chronyd, ntpd or systemd-timesyncd was found")
	}
	return ok("read %s", strings.Join(files, ", "))
}

package doctor

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// setters are the programs that set clocks, by the name the kernel keeps of them (15 bytes).
var setters = map[string]string{
	"chronyd":         "chronyd",
	"ntpd":            "ntpd",
	"systemd-timesyn": "systemd-timesyncd",
	"phc2sys":         "phc2sys",
	"vmtoolsd":        "vmtoolsd",
	"VBoxService":     "VBoxService",
}

// maxProcesses is how many processes are looked at.
const maxProcesses = 100_000

// processes finds the running programs that set clocks, and whether any process could be
// seen at all.
func (h host) processes() (list []Process, known bool) {
	names := h.glob("/proc/[0-9]*/comm")
	for _, n := range names[:min(len(names), maxProcesses)] {
		comm := h.text(n)
		known = known || comm != ""
		daemon, ok := setters[comm]
		if !ok {
			continue
		}
		line, _ := h.read(path.Join(path.Dir(n), "cmdline"))
		args := strings.Split(strings.TrimRight(line, "\x00"), "\x00")
		list = append(list, Process{Daemon: daemon, Args: args[1:]})
	}
	slices.SortFunc(list, func(a, b Process) int { return strings.Compare(a.Daemon, b.Daemon) })
	// A daemon of two processes, as chronyd is, counts once.
	list = slices.CompactFunc(list, func(a, b Process) bool { return a.Daemon == b.Daemon })
	return list, known
}

// argument is what follows -f or stands right behind it.
func (p *Process) argument(flag string) string {
	for i, a := range p.Args {
		if a == flag && i+1 < len(p.Args) {
			return p.Args[i+1]
		}
		if rest, ok := strings.CutPrefix(a, flag); ok && rest != "" {
			return rest
		}
	}
	return ""
}

// has reports whether a single-letter flag is set, alone or among others.
func (p *Process) has(letter string) bool {
	for _, a := range p.Args {
		if len(a) > 1 && a[0] == '-' && a[1] != '-' && strings.Contains(a, letter) {
			return true
		}
	}
	return false
}

// running is the process of a daemon, or nil.
func (f *Facts) running(daemon string) *Process {
	for i := range f.Daemons {
		if f.Daemons[i].Daemon == daemon {
			return &f.Daemons[i]
		}
	}
	return nil
}

// configuration reads the files that the running daemons use, and the usual ones.
func (h host) configuration(f *Facts) Configuration {
	var c Configuration
	add := func(problems []string) { c.Problems = append(c.Problems, problems...) }
	chronyAt, ntpdAt := chronyFiles, ntpdFiles
	if p := f.running("chronyd"); p != nil && p.argument("-f") != "" {
		chronyAt = []string{p.argument("-f")}
	}
	if p := f.running("ntpd"); p != nil && p.argument("-c") != "" {
		ntpdAt = []string{p.argument("-c")}
	}
	var problems []string
	c.Chrony, problems = h.chrony(chronyAt)
	add(problems)
	c.Ntpd, problems = h.ntpd(ntpdAt)
	add(problems)
	c.Timesyncd, problems = h.timesyncd()
	add(problems)
	if p := f.running("ntpd"); p != nil && c.Ntpd != nil && c.Ntpd.StepAt.File == "" && p.has("x") {
		c.Ntpd.Step, c.Ntpd.StepAt = ntpdStepX, Place{File: "ntpd -x"}
	}
	return c
}

const clockSources = "/sys/devices/system/clocksource/clocksource0/"

// capSysTime is the number of CAP_SYS_TIME.
const capSysTime = 25

func (h host) container() Container {
	c := Container{Known: h.exists("/proc/self/status")}
	cgroup := h.text("/proc/1/cgroup")
	switch {
	case h.exists("/var/run/secrets/kubernetes.io"), strings.Contains(cgroup, "kubepods"):
		c.Kind = "kubernetes"
	case h.exists("/.dockerenv"), strings.Contains(cgroup, "/docker"):
		c.Kind = "docker"
	case h.exists("/run/.containerenv"), strings.Contains(cgroup, "libpod"):
		c.Kind = "podman"
	case strings.Contains(cgroup, "/lxc"):
		c.Kind = "lxc"
	case strings.Contains(cgroup, "containerd"):
		c.Kind = "containerd"
	default:
		c.Kind = firstWord(h.text("/run/systemd/container"))
	}
	for _, line := range strings.Split(h.text("/proc/self/status"), "\n") {
		if hex, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, err := strconv.ParseUint(strings.TrimSpace(hex), 16, 64)
			c.MaySetClock = err == nil && caps>>capSysTime&1 == 1
		}
	}
	quota, period := 0.0, 0.0
	if n, _ := fmt.Sscanf(h.text("/sys/fs/cgroup/cpu.max"), "%g %g", &quota, &period); n == 2 && quota > 0 && period > 0 {
		c.Quota = fmt.Sprintf("%.3g processors", quota/period)
	}
	return c
}

func firstWord(s string) string {
	if words := strings.Fields(s); len(words) > 0 {
		return words[0]
	}
	return ""
}

// vendors tell a hypervisor by what its firmware says.
var vendors = []struct{ sign, name string }{
	{"QEMU", "kvm"}, {"KVM", "kvm"}, {"Amazon EC2", "kvm"}, {"Google Compute Engine", "kvm"}, {"OpenStack", "kvm"},
	{"VMware", "vmware"}, {"VirtualBox", "virtualbox"}, {"innotek", "virtualbox"}, {"Microsoft Corporation", "hyper-v"},
	{"Xen", "xen"}, {"Parallels", "parallels"}, {"Bochs", "bochs"}, {"Apple Virtualization", "apple"},
}

func (h host) machine() Machine {
	cpu := h.text("/proc/cpuinfo")
	m := Machine{Known: cpu != ""}
	firmware := h.text("/sys/class/dmi/id/sys_vendor") + " " + h.text("/sys/class/dmi/id/product_name")
	virtual := strings.Contains(cpu, " hypervisor")
	for _, v := range vendors {
		// Microsoft makes computers as well.
		if strings.Contains(firmware, v.sign) && (v.name != "hyper-v" || strings.Contains(firmware, "Virtual")) {
			m.Hypervisor = v.name
			break
		}
	}
	if kind := h.text("/sys/hypervisor/type"); m.Hypervisor == "" && kind != "" {
		m.Hypervisor = firstWord(kind)
	}
	if m.Hypervisor == "" && virtual {
		m.Hypervisor = "unnamed"
	}
	for _, n := range h.glob("/sys/class/ptp/ptp*/clock_name") {
		if name := h.text(n); strings.Contains(name, "KVM virtual PTP") || name == "hyperv" || name == "ptp_vmw" {
			m.HostClocks = append(m.HostClocks, "/dev/"+path.Base(path.Dir(n)))
		}
	}
	return m
}

package doctor

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/escapement-io/escapement/clock"
)

// want is what one check is to say: its status and what must occur in detail or fix.
type want struct {
	check  string
	status Status
	says   []string
}

// synchronised is a kernel as it should be.
var synchronised = clock.KernelState{Known: true, Synchronised: true, MaxError: 20_000_000}

func TestRoots(t *testing.T) {
	for _, tt := range []struct {
		root string
		want []want
	}{
		{"chrony-sound", []want{
			{"time-daemon", OK, []string{"chronyd"}},
			{"daemon-config", OK, []string{"/etc/chrony/chrony.conf"}},
			{"daemon-may-step", OK, []string{"/etc/chrony/conf.d/20-step.conf:1", "first 3 updates"}},
			{"daemon-slew-rate", OK, []string{"/usr/share/chrony/conf.d/30-slew.conf:1", "500 ppm"}},
			{"time-sources", OK, []string{"3 time sources", "server time1.example.org", "refclock SHM 0"}},
			{"clock-source", OK, []string{"tsc"}},
			{"container", Unknown, nil},
		}},
		{"chrony-anytime", []want{
			{"daemon-may-step", Fail, []string{"/etc/chrony/chrony.conf:4", "makestep 0.1 -1", "at any time", "10 requests", "write instead\nmakestep 1 3"}},
			{"daemon-slew-rate", Warning, []string{"8.3 %", "917 to 1083", "maxslewrate 500", "add to /etc/chrony/chrony.conf"}},
			{"time-sources", Warning, []string{"1 of the 3", "169.254.169.123", "pool 2.pool.ntp.org"}},
		}},
		{"chrony-never", []want{
			{"daemon-may-step", Warning, []string{"/etc/chrony.conf has no makestep", "83 days", "makestep 1 3"}},
			{"time-sources", OK, []string{"4 time sources"}},
		}},
		{"chrony-faulty", []want{
			{"daemon-config", Warning, []string{"/etc/chrony.conf:1: makestep", "/etc/chrony.conf:2: /etc/chrony/missing.conf does not exist",
				"10 levels", "/etc/chrony.conf:4: server names nothing"}},
			{"time-sources", Fail, []string{"names no time source"}},
		}},
		{"ntpd-default", []want{
			{"daemon-may-step", Warning, []string{"128 ms", "ntpd -gq", "-x"}},
			{"daemon-slew-rate", OK, []string{"500 ppm"}},
			{"time-sources", Warning, []string{"2 of the 3", "nobody can tell which"}},
			{"daemon-config", OK, []string{"/etc/ntp.conf"}},
		}},
		{"ntpd-never", []want{
			{"daemon-may-step", Warning, []string{"/etc/ntpsec/ntp.conf:1", "tinker step 0", "83 days", "-gq"}},
			{"time-sources", OK, []string{"4 time sources"}},
		}},
		{"timesyncd", []want{
			{"daemon-may-step", Warning, []string{"0.4 s, at any time", "40 requests", "chrony"}},
			{"time-sources", Warning, []string{"one server at a time"}},
			{"daemon-slew-rate", OK, nil},
		}},
		{"two-daemons", []want{
			{"time-daemon", Fail, []string{"chronyd and systemd-timesyncd", "systemctl disable --now systemd-timesyncd"}},
		}},
		{"slow-clock", []want{
			{"clock-source", Warning, []string{"xen", "1 µs", "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource", "clocksource=tsc"}},
			{"time-daemon", Fail, []string{"no time daemon runs"}},
			{"virtual-machine", OK, []string{"xen"}},
			{"daemon-may-step", Unknown, nil},
		}},
		{"kubernetes", []want{
			{"container", Warning, []string{"kubernetes", "0.5 processors", "SYS_TIME"}},
			{"virtual-machine", OK, []string{"kvm", "refclock PHC /dev/ptp0"}},
			{"time-daemon", Unknown, []string{"cannot be seen"}},
		}},
		{"bare", []want{
			{"container", OK, []string{"docker"}},
			{"time-daemon", Unknown, nil}, {"daemon-config", Unknown, nil}, {"daemon-may-step", Unknown, nil},
			{"daemon-slew-rate", Unknown, nil}, {"time-sources", Unknown, nil}, {"clock-source", Unknown, nil},
			{"virtual-machine", Unknown, nil}, {"watched-steps", Unknown, nil}, {"watched-suspends", Unknown, nil},
			{"store-offset", Unknown, nil}, {"ntp-offset", Unknown, nil}, {"limit-precision", Unknown, nil},
			{"fleet-reach", Unknown, nil}, {"fleet-state", Unknown, nil}, {"fleet-offset", Unknown, nil}, {"fleet-source", Unknown, nil},
		}},
	} {
		t.Run(tt.root, func(t *testing.T) {
			f := HostFacts(os.DirFS("testdata/" + tt.root))
			f.Kernel = synchronised
			expect(t, Judge(f), tt.want...)
		})
	}
}

// expect compares checks of a report, and holds every report to its form.
func expect(t *testing.T, r Report, list ...want) {
	t.Helper()
	var names []string
	for _, c := range r.Checks {
		names = append(names, c.Name)
		if c.Detail == "" {
			t.Errorf("%s says nothing", c.Name)
		}
		if c.Status.Finding() != (c.Fix != "") {
			t.Errorf("%s is %s, with the fix %q", c.Name, c.Status, c.Fix)
		}
	}
	if !slices.Equal(names, Names()) {
		t.Errorf("checks %v, want %v", names, Names())
	}
	for _, w := range list {
		i := slices.Index(names, w.check)
		if i < 0 {
			t.Errorf("no check %s", w.check)
			continue
		}
		c := r.Checks[i]
		if c.Status != w.status {
			t.Errorf("%s: %s, want %s: %s", c.Name, c.Status, w.status, c.Detail)
		}
		for _, s := range w.says {
			if !strings.Contains(c.Detail+"\n"+c.Fix, s) {
				t.Errorf("%s does not say %q:\n%s\n%s", c.Name, s, c.Detail, c.Fix)
			}
		}
	}
}

// at is a process of a file system made up for a test.
func at(fs fstest.MapFS, pid, comm string, args ...string) fstest.MapFS {
	fs["proc/"+pid+"/comm"] = &fstest.MapFile{Data: []byte(comm + "\n")}
	fs["proc/"+pid+"/cmdline"] = &fstest.MapFile{Data: []byte(strings.Join(append([]string{comm}, args...), "\x00") + "\x00")}
	return fs
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func TestArgumentsOfDaemonsCount(t *testing.T) {
	fs := at(fstest.MapFS{
		"etc/chrony.conf":  file("makestep 1 3\n"),
		"srv/own.conf":     file("makestep 0.5 -1\nserver a\n"),
		"etc/ntp.conf":     file("server a\n"),
		"srv/own-ntp.conf": file("server a\nserver b\nserver c\n"),
	}, "10", "chronyd", "-F", "2", "-f", "/srv/own.conf")
	f := HostFacts(fs)
	expect(t, Judge(f), want{"daemon-may-step", Fail, []string{"/srv/own.conf:1"}})

	f = HostFacts(at(fstest.MapFS{"etc/ntp.conf": fs["etc/ntp.conf"], "srv/own-ntp.conf": fs["srv/own-ntp.conf"]},
		"10", "ntpd", "-g", "-x", "-c", "/srv/own-ntp.conf"))
	expect(t, Judge(f),
		want{"daemon-may-step", OK, []string{"ntpd -x", "600 s"}},
		want{"time-sources", OK, []string{"3 time sources"}})
}

func TestConfigurationOfAnIdleDaemonIsTempered(t *testing.T) {
	conf := file("makestep 0.1 -1\nserver a\n")
	other := at(fstest.MapFS{"etc/chrony.conf": conf, "etc/ntp.conf": file("tinker step 600\n")}, "5", "ntpd")
	for _, tt := range []struct {
		name string
		fs   fstest.MapFS
		want Status
	}{
		{"it runs", at(fstest.MapFS{"etc/chrony.conf": conf}, "5", "chronyd"), Fail},
		{"nobody can tell", fstest.MapFS{"etc/chrony.conf": conf}, Fail},
		{"a container", at(fstest.MapFS{"etc/chrony.conf": conf, ".dockerenv": file("")}, "1", "app"), Fail},
		{"it does not run", at(fstest.MapFS{"etc/chrony.conf": conf}, "1", "init"), Warning},
		{"another runs", other, OK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			expect(t, Judge(HostFacts(tt.fs)), want{"daemon-may-step", tt.want, []string{"makestep 0.1 -1", "at any time"}})
		})
	}
}

func TestChronyWithoutRTCSyncExplainsTheKernel(t *testing.T) {
	f := HostFacts(at(fstest.MapFS{"etc/chrony.conf": file("pool a\nmakestep 1 3\n")}, "5", "chronyd"))
	f.Kernel = clock.KernelState{Known: true}
	expect(t, Judge(f), want{"kernel-sync", Warning, []string{"without rtcsync", "rtcsync   # in /etc/chrony.conf"}})
	f = HostFacts(at(fstest.MapFS{"etc/chrony.conf": file("pool a\nrtcsync\n")}, "5", "chronyd"))
	f.Kernel = clock.KernelState{Known: true}
	expect(t, Judge(f), want{"kernel-sync", Fail, []string{"43 s a day"}})
	f.Kernel = clock.KernelState{}
	expect(t, Judge(f), want{"kernel-sync", Unknown, nil})
}

func TestSourcesAreThoseOfTheRunningDaemon(t *testing.T) {
	for root, want := range map[string][]string{
		"chrony-sound":   {"server time1.example.org", "server time2.example.net", "refclock SHM 0"},
		"chrony-anytime": {"server 169.254.169.123"},
		"ntpd-default":   {"server time1.example.org", "server time2.example.org"},
		"timesyncd":      {"server a.example.org", "server b.example.org"},
		"bare":           nil,
		"slow-clock":     nil,
	} {
		got := HostFacts(os.DirFS("testdata/" + root)).Sources()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", root, got, want)
		}
	}
}

func TestHugeFilesAndDeepIncludesEnd(t *testing.T) {
	fs := fstest.MapFS{
		"etc/chrony.conf": file("include /etc/big.conf\ninclude /etc/a/*.conf\n"),
		"etc/big.conf":    file(strings.Repeat("# padding\n", 200_000)),
	}
	for i := range 300 {
		fs["etc/a/"+string(rune('a'+i%26))+strings.Repeat("x", i/26)+".conf"] = file("include /etc/a/*.conf\n")
	}
	expect(t, Judge(HostFacts(fs)), want{"daemon-config", Warning, []string{"/etc/big.conf cannot be read: longer than 1048576 bytes", "more than 200 files"}})
}

// What could not be read is not taken for something that is not there.
func TestUnreadFilesAreNotEmptyOnes(t *testing.T) {
	secret := &fstest.MapFile{Mode: fs.ModeNamedPipe} // nor does anybody wait for a pipe
	conf := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, tt := range map[string]struct {
		root fstest.MapFS
		says string
	}{
		"chrony":          {fstest.MapFS{"etc/chrony/chrony.conf": secret}, "/etc/chrony/chrony.conf"},
		"ntpd":            {fstest.MapFS{"etc/ntp.conf": secret}, "/etc/ntp.conf"},
		"chrony, include": {fstest.MapFS{"etc/chrony.conf": conf("include /etc/more.conf\n"), "etc/more.conf": secret}, "/etc/chrony.conf:1: /etc/more.conf cannot be read"},
		"ntpd, include":   {fstest.MapFS{"etc/ntp.conf": conf("includefile more.conf\n"), "etc/more.conf": secret}, "/etc/ntp.conf:1: /etc/more.conf cannot be read"},
	} {
		f := HostFacts(tt.root)
		f.Kernel = synchronised
		r := Judge(f)
		t.Run(name, func(t *testing.T) {
			expect(t, r, want{"daemon-config", Warning, []string{tt.says, "not a regular file"}},
				want{"daemon-may-step", Unknown, nil}, want{"time-sources", Unknown, nil}, want{"daemon-slew-rate", Unknown, nil})
		})
	}
}

// A file of includes alone, all of itself, is given up on early.
func TestManyIncludesAreFew(t *testing.T) {
	root := fstest.MapFS{"etc/chrony.conf": {Data: []byte(strings.Repeat("include /etc/c*.conf\n", maxFile/30))}}
	opened := &counting{FS: root}
	HostFacts(opened)
	if opened.n > 50*maxFiles {
		t.Errorf("%d files and folders opened", opened.n)
	}
}

type counting struct {
	fs.FS
	n int
}

func (c *counting) Open(name string) (fs.File, error) {
	c.n++
	return c.FS.Open(name)
}

func TestStepsForTwoYearsAreCounted(t *testing.T) {
	f := HostFacts(fstest.MapFS{"etc/chrony.conf": {Data: []byte("makestep 1 1e300\n")}})
	expect(t, Judge(f), want{"daemon-may-step", Warning, []string{"makestep 1 1000000", "about 17777h"}})
}

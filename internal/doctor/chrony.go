package doctor

import (
	"strconv"
	"strings"
)

// Chrony is what the configuration of chronyd says about setting the clock. A place without
// a file means that the directive is not there.
type Chrony struct {
	File     string
	Makestep Makestep
	// MaxSlewPPM is the speed at which it corrects at most.
	MaxSlewPPM float64
	SlewAt     Place
	RTCSync    bool // without it chronyd leaves the kernel's flag at "not synchronised"
	Sources    []TimeSource
	Unread     bool // a file that it includes could not be read: what is missing may stand there
}

// Makestep says when chronyd steps: if an error is larger than Threshold, in seconds, in
// one of the first Limit updates; a negative Limit means in any.
type Makestep struct {
	Place
	Threshold float64
	Limit     int
}

const (
	chronySlewPPM     = 83333.333 // default of maxslewrate
	chronyPoolSize    = 4         // default of maxsources
	chronyMostUpdates = 1_000_000 // two years of them
)

var chronyFiles = []string{"/etc/chrony/chrony.conf", "/etc/chrony.conf"}

// chronyDialect: a comment is a whole line.
var chronyDialect = dialect{
	comment: func(line string) string {
		if s := strings.TrimSpace(line); s != "" && strings.ContainsRune("!;#%", rune(s[0])) {
			return ""
		}
		return line
	},
	include: func(r *reader, d directive, depth int) bool {
		var suffix string
		switch {
		case d.is("include"):
			for _, pattern := range d.words[1:] {
				if r.full(depth + 1) {
					r.file(pattern, d.Place, depth+1)
					continue
				}
				names := r.host.glob(pattern)
				if len(names) == 0 && !strings.ContainsAny(pattern, "*?[") {
					r.problem(d.Place, "%s does not exist", pattern)
				}
				for _, n := range names {
					r.file(n, d.Place, depth+1)
				}
			}
			return true
		case d.is("confdir"):
			suffix = ".conf"
		case d.is("sourcedir"):
			suffix = ".sources"
		default:
			return false
		}
		for _, name := range r.host.merged(d.words[1:], suffix) {
			r.file(name, d.Place, depth+1)
		}
		return true
	},
}

// chrony reads the configuration from the first of the files that exists.
func (h host) chrony(files []string) (*Chrony, []string) {
	name := h.first(files)
	if name == "" {
		return nil, nil
	}
	r := h.directives(name, chronyDialect)
	if r.files == 1 && r.unread && len(r.directives) == 0 {
		return nil, r.problems
	}
	c := &Chrony{File: name, MaxSlewPPM: chronySlewPPM, Unread: r.unread}
	for _, d := range r.directives {
		c.take(r, d)
	}
	return c, r.problems
}

func (c *Chrony) take(r *reader, d directive) {
	switch {
	case d.is("makestep"):
		threshold, limit := d.number(1), d.number(2)
		if threshold == nil || limit == nil {
			r.problem(d.Place, "makestep needs a threshold in seconds and a number of updates, such as: makestep 1 3")
			return
		}
		c.Makestep = Makestep{d.Place, *threshold, int(min(max(*limit, -1), chronyMostUpdates))}
	case d.is("maxslewrate"):
		if ppm := d.number(1); ppm != nil && *ppm >= 0 {
			c.MaxSlewPPM, c.SlewAt = *ppm, d.Place
			return
		}
		r.problem(d.Place, "maxslewrate needs a number of ppm, such as: maxslewrate 500")
	case d.is("rtcsync"):
		c.RTCSync = true
	case d.is("server"), d.is("peer"), d.is("pool"), d.is("refclock"):
		if len(d.words) < 2 {
			r.problem(d.Place, "%s names nothing", d.words[0])
			return
		}
		s := TimeSource{Place: d.Place, Kind: strings.ToLower(d.words[0]), Name: d.words[1], Count: 1}
		switch s.Kind {
		case "refclock":
			s.Name = strings.Join(d.words[1:min(3, len(d.words))], " ")
		case "pool":
			s.Count = chronyPoolSize
			if n, err := strconv.Atoi(d.option("maxsources")); err == nil && n > 0 {
				s.Count = min(n, 16)
			}
		}
		c.Sources = append(c.Sources, s)
	}
}

// number is the i-th word as a number, or nil.
func (d directive) number(i int) *float64 {
	if i >= len(d.words) {
		return nil
	}
	x, err := strconv.ParseFloat(d.words[i], 64)
	if err != nil || x != x {
		return nil
	}
	return &x
}

func (h host) first(files []string) string {
	for _, f := range files {
		if h.exists(f) {
			return f
		}
	}
	return ""
}

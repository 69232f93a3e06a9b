package doctor

import (
	"path"
	"strings"
)

// Ntpd is what the configuration of ntpd, classic or ntpsec, says about setting the clock.
type Ntpd struct {
	File string
	// Step is the error, in seconds, beyond which it steps at any time; 0 means never.
	Step    float64
	StepAt  Place // without a file: the default
	Sources []TimeSource
	Unread  bool // a file that it includes could not be read: what is missing may stand there
}

const (
	ntpdStep     = 0.128 // default of tinker step
	ntpdStepX    = 600   // with -x
	ntpdPoolSize = 4     // a pool name resolves to that many addresses
)

var ntpdFiles = []string{"/etc/ntpsec/ntp.conf", "/etc/ntp.conf"}

// ntpdDialect: a comment goes to the end of the line.
var ntpdDialect = dialect{
	comment: func(line string) string {
		line, _, _ = strings.Cut(line, "#")
		return line
	},
	include: func(r *reader, d directive, depth int) bool {
		if !d.is("includefile") {
			return false
		}
		for _, name := range d.words[1:] {
			name = strings.Trim(name, `"`)
			if !path.IsAbs(name) {
				name = path.Join(path.Dir(d.File), name)
			}
			r.file(name, d.Place, depth+1)
		}
		return true
	},
}

func (h host) ntpd(files []string) (*Ntpd, []string) {
	name := h.first(files)
	if name == "" {
		return nil, nil
	}
	r := h.directives(name, ntpdDialect)
	if r.files == 1 && r.unread && len(r.directives) == 0 {
		return nil, r.problems
	}
	c := &Ntpd{File: name, Step: ntpdStep, Unread: r.unread}
	for _, d := range r.directives {
		c.take(r, d)
	}
	return c, r.problems
}

func (c *Ntpd) take(r *reader, d directive) {
	switch {
	case d.is("tinker"):
		for i := 1; i < len(d.words); i += 2 {
			if !strings.EqualFold(d.words[i], "step") {
				continue
			}
			if x := d.number(i + 1); x != nil && *x >= 0 {
				c.Step, c.StepAt = *x, d.Place
			} else {
				r.problem(d.Place, "tinker step needs a number of seconds")
			}
		}
	case d.is("server"), d.is("peer"), d.is("pool"), d.is("refclock"):
		words := d.words[1:]
		for len(words) > 0 && (words[0] == "-4" || words[0] == "-6") {
			words = words[1:]
		}
		if len(words) == 0 {
			r.problem(d.Place, "%s names nothing", d.words[0])
			return
		}
		s := TimeSource{Place: d.Place, Kind: strings.ToLower(d.words[0]), Name: words[0], Count: 1}
		switch {
		case strings.HasPrefix(s.Name, "127.127.1."):
			return // the machine's own clock is no source of time
		case strings.HasPrefix(s.Name, "127.127."):
			s.Kind = "refclock"
		case s.Kind == "pool":
			s.Count = ntpdPoolSize
		}
		c.Sources = append(c.Sources, s)
	}
}

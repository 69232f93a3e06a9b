package doctor

import "strings"

// Timesyncd is what the configuration of systemd-timesyncd says. It asks one server at a
// time.
type Timesyncd struct {
	File     string
	Sources  []TimeSource // NTP=, or FallbackNTP= where there is none
	fallback []TimeSource
	servers  []TimeSource
}

const timesyncdFile = "/etc/systemd/timesyncd.conf"

// timesyncdDirs hold further files, the more important directory first.
var timesyncdDirs = []string{"/etc/systemd/timesyncd.conf.d", "/run/systemd/timesyncd.conf.d", "/usr/lib/systemd/timesyncd.conf.d"}

func (h host) timesyncd() (*Timesyncd, []string) {
	var names []string
	if h.exists(timesyncdFile) {
		names = append(names, timesyncdFile)
	}
	names = append(names, h.merged(timesyncdDirs, ".conf")...)
	if len(names) == 0 {
		return nil, nil
	}
	c := &Timesyncd{File: names[0]}
	var problems []string
	for _, n := range names[:min(len(names), maxFiles)] {
		text, err := h.read(n)
		if err != nil {
			problems = append(problems, n+": cannot be read: "+cause(err).Error())
			continue
		}
		c.take(n, text)
	}
	if c.Sources = c.servers; len(c.servers) == 0 {
		c.Sources = c.fallback
	}
	return c, problems
}

// take reads one INI file. An assignment adds to the list, an empty one clears it.
func (c *Timesyncd) take(file, text string) {
	section := ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			section = line
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		list := &c.servers
		switch strings.TrimSpace(key) {
		case "NTP":
		case "FallbackNTP":
			list = &c.fallback
		default:
			continue
		}
		if section != "[Time]" {
			continue
		}
		names := strings.Fields(value)
		if len(names) == 0 {
			*list = nil
		}
		for _, n := range names {
			*list = append(*list, TimeSource{Place: Place{file, i + 1}, Kind: "server", Name: n, Count: 1})
		}
	}
}

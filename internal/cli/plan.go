package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/sizing"
)

// PlanCmd is escapement plan. The flags are texts, so that all that are wrong are
// reported at once.
type PlanCmd struct {
	Instances string `placeholder:"N" help:"Instances that share the limit."`
	Rate      string `aliases:"demand" placeholder:"R" help:"Requests per second over all instances, of one key."`
	Limit     string `placeholder:"L" help:"Requests that may pass in a window."`
	Per       string `placeholder:"W" help:"The window, such as 10s."`
	Sync      string `placeholder:"S" help:"How often instances agree, such as 200ms; a twentieth of the window unless given."`
	Window    string `default:"fixed" placeholder:"KIND" help:"fixed, sliding or rolling; ${default} unless given."`
	Mode      string `default:"lease" placeholder:"MODE" help:"lease, delayed or exact; ${default} unless given."`
	Keys      string `default:"1" placeholder:"K" help:"Keys with such demand at a time, for the load of the store; ${default} unless given."`
	JSON      bool   `name:"json" help:"Print one JSON document."`
}

// Run prints what the setup comes to. Exit 2: flags are wrong.
func (c *PlanCmd) Run(out *Output) error {
	s, problems := c.setup()
	p, err := sizing.New(s)
	problems = append(problems, planProblems(err, problems)...)
	if len(problems) > 0 {
		var text strings.Builder
		for i, p := range problems {
			if i > 0 {
				text.WriteString("\nescapement: ")
			}
			fmt.Fprintf(&text, "plan: --%s: %s\n  %s", p.Field, p.Text, p.Hint)
		}
		return usage("%s", text.String())
	}
	return out.Result("plan", c.JSON, p)
}

// setup reads the flags. What is no value is a problem and stays zero.
func (c *PlanCmd) setup() (s sizing.Setup, problems []*sizing.Problem) {
	read := func(field, text, hint string, parse func(string) error) {
		switch {
		case text == "" && field != "sync":
			problems = append(problems, &sizing.Problem{Field: field, Text: "missing", Hint: hint})
		case text != "" && parse(text) != nil:
			problems = append(problems, &sizing.Problem{Field: field, Text: strconv.Quote(text) + " is not a value that it takes", Hint: hint})
		}
	}
	integer := func(to *int) func(string) error {
		return func(text string) (err error) {
			if *to, err = strconv.Atoi(text); err == nil && *to < 1 {
				err = errors.New("not positive")
			}
			return err
		}
	}
	span := func(to *time.Duration) func(string) error {
		return func(text string) (err error) {
			if *to, err = time.ParseDuration(text); err == nil && *to <= 0 {
				err = errors.New("not positive")
			}
			return err
		}
	}
	read("instances", c.Instances, "write how many share the limit, such as --instances 2", integer(&s.Instances))
	read("rate", c.Rate, "write requests per second over all instances, such as --rate 800", func(text string) (err error) {
		s.Rate, err = strconv.ParseFloat(text, 64)
		return err
	})
	read("limit", c.Limit, "write how many requests may pass in a window, such as --limit 500", func(text string) (err error) {
		s.Limit, err = strconv.ParseInt(text, 10, 64)
		return err
	})
	read("per", c.Per, "write the window with its unit, such as --per 10s", span(&s.Per))
	read("sync", c.Sync, "write how often instances agree with its unit, such as --sync 200ms", span(&s.Sync))
	read("keys", c.Keys, "write how many keys have such demand, such as --keys 1000", integer(&s.Keys))
	s.Window, s.Mode = sizing.Window(c.Window), sizing.Mode(c.Mode)
	return s, problems
}

// planProblems are those of a setup whose flags could be read: of a flag in known nothing
// more is said.
func planProblems(err error, known []*sizing.Problem) (out []*sizing.Problem) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	said := map[string]bool{}
	for _, p := range known {
		said[p.Field] = true
	}
	for _, e := range joined.Unwrap() {
		if p, ok := errors.AsType[*sizing.Problem](e); ok && !said[p.Field] {
			out = append(out, p)
		}
	}
	return out
}

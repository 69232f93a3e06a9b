package cli

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/escapement-io/escapement/internal/drill"
)

// CeilingCmd is escapement drill ceiling.
type CeilingCmd struct {
	URL     string        `required:"" placeholder:"URL" help:"Where the gateway serves a route under the limit."`
	Drilled drilled       `embed:""`
	Rate    int           `placeholder:"N" help:"Requests per second, on a fixed schedule; three times the limit unless given."`
	For     time.Duration `default:"20s" help:"How long the load lasts."`
	Header  []string      `sep:"none" placeholder:"NAME:VALUE" help:"Send this with every request, such as the name of a consumer of the drill's own; repeatable."`
	Refused int           `default:"429" placeholder:"STATUS" help:"The status of a refusal."`
	JSON    bool          `name:"json" help:"Print one JSON document."`
}

// Run measures. Exit 1: the ceiling is not where it should be, or could not be found.
func (c *CeilingCmd) Run(ctx context.Context, out *Output) error {
	l, err := c.Drilled.limit()
	if err != nil {
		return err
	}
	o := drill.CeilingOptions{URL: c.URL, Header: http.Header{}, Limit: l, Rate: c.Rate, For: c.For, Refused: c.Refused}
	if o.Rate == 0 {
		o.Rate = threefold(l)
	}
	for _, h := range c.Header {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return usage("drill: --header %q: write NAME:VALUE", h)
		}
		o.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if err := o.Check(); err != nil {
		return usage("%w", err)
	}
	stop := out.progress(func() string { return fmt.Sprintf("%v of load", o.For) })
	m, err := drill.MeasureCeiling(ctx, o)
	stop()
	if err != nil {
		return err
	}
	if c.JSON {
		err = out.JSON(m)
	} else {
		err = m.Text(out.Out)
	}
	if err != nil {
		return fmt.Errorf("drill: %w", err)
	}
	if !m.Held() {
		return found()
	}
	return nil
}

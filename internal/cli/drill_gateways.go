package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/escapement-io/escapement/internal/drill/twogateways"
	"github.com/escapement-io/escapement/internal/plot"
	"github.com/escapement-io/escapement/internal/redisserver"
	"github.com/escapement-io/escapement/tools/skewrun"
)

// TwoGatewaysCmd is escapement drill two-gateways.
type TwoGatewaysCmd struct {
	Instances int           `default:"2" help:"Gateway processes."`
	Limit     int64         `default:"500" placeholder:"N" help:"Requests that may pass in a window."`
	Per       time.Duration `default:"1s" help:"The window."`
	Window    string        `default:"fixed" placeholder:"KIND" help:"Its kind: fixed, sliding or rolling."`
	Sync      time.Duration `default:"200ms" help:"How often the gateways agree; of no use to the mode exact."`
	Mode      string        `default:"lease" placeholder:"MODE" help:"How they agree: delayed, lease or exact."`
	Rate      int           `default:"800" placeholder:"N" help:"Requests per second of all gateways together, in turn and on a fixed schedule."`
	For       time.Duration `default:"30s" help:"How long the load lasts."`

	BurstFromIdle bool `help:"Instead of a rate: ask every gateway for the whole limit at once at the start of a window, then leave four windows without requests, and again."`

	Skew        time.Duration   `placeholder:"DURATION" help:"Run the first gateway under a wall clock that is off by so much, such as +900ms."`
	Step        []time.Duration `sep:"none" placeholder:"DURATION" help:"Step the wall clock of the last gateway by so much, such as -320ms; repeatable, spread evenly over the load."`
	StoreStep   []time.Duration `sep:"none" placeholder:"DURATION" help:"Step the store's clock by so much, likewise."`
	KillGateway time.Duration   `placeholder:"AT" help:"Kill the last gateway so long after the load began."`
	KillStore   time.Duration   `placeholder:"AT" help:"Kill the store, which syncs every write, and start it again."`
	Failover    time.Duration   `placeholder:"AT" help:"Kill the store, and have a sentinel promote its replica, which lags."`
	Lag         time.Duration   `default:"300ms" help:"By how much it lags."`

	Plot string `placeholder:"FILE" help:"Draw what was admitted per second to a .png or .svg file."`
	JSON bool   `name:"json" help:"Print one JSON document."`
}

// Run drills. Exit 1: a bound did not hold; 3: this machine cannot run the drill.
func (c *TwoGatewaysCmd) Run(ctx context.Context, out *Output) error {
	o := c.options()
	if err := o.Check(); err != nil {
		return usage("%w", err)
	}
	var format string
	var err error
	if c.Plot != "" {
		if format, err = plot.Format(c.Plot); err != nil {
			return usage("%w", err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("drill: finding this program: %w", err)
	}
	o.Gateway = func(configuration string, i int) []string {
		return []string{self, "gateway", "-c", configuration, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--stamps",
			"--sync-phase", (c.Sync * time.Duration(i) / time.Duration(c.Instances)).String()}
	}
	var doing atomic.Pointer[string]
	o.Progress = func(what string) { doing.Store(&what) }
	o.Progress("starting")
	stop := out.progress(func() string { return *doing.Load() })
	r, err := twogateways.Run(ctx, o)
	stop()
	switch {
	case errors.Is(err, redisserver.ErrMissing), errors.Is(err, skewrun.ErrUnsupported):
		return fmt.Errorf("%w\n  the same worlds run on any machine, in virtual time: escapement simulate", err)
	case err != nil:
		return err
	}
	if c.Plot != "" {
		if err := writeChart(c.Plot, format, r.Chart()); err != nil {
			return fmt.Errorf("drill: %w", err)
		}
	}
	if err := out.Result("drill", c.JSON, r); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return found()
	}
	return nil
}

func (c *TwoGatewaysCmd) options() twogateways.Options {
	return twogateways.Options{
		Instances: c.Instances, Limit: c.Limit, Per: c.Per, Window: c.Window, Sync: c.Sync, Mode: c.Mode, Rate: c.Rate, For: c.For, Burst: c.BurstFromIdle,
		Faults: twogateways.Faults{
			Skew: c.Skew, Steps: c.Step, StoreStep: c.StoreStep,
			KillGateway: c.KillGateway, KillStore: c.KillStore, Failover: c.Failover, Lag: c.Lag,
		},
	}
}

package cli

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/escapement-io/escapement/internal/config"
	"github.com/escapement-io/escapement/internal/gateway"
)

// GatewayCmd is escapement gateway.
type GatewayCmd struct {
	Config            string `short:"c" type:"existingfile" placeholder:"FILE" xor:"source" required:"" help:"Configuration: native YAML or JSON, or an APISIX standalone file. A change is taken over while the gateway runs."`
	Demo              bool   `xor:"source" required:"" help:"Serve a demo upstream under a demo limit."`
	Listen            string `placeholder:"HOST:PORT" help:"Listen here instead of where the configuration says."`
	Admin             string `placeholder:"HOST:PORT" help:"Put the admin listener here instead."`
	IgnoreUnsupported bool   `help:"Leave out what is not supported instead of refusing the file; what was left out is listed."`
	MaxKeys           int    `default:"4194304" help:"Cap of records in memory; at the cap unknown keys follow their limit's on_failure."`
	LogJSON           bool   `help:"Log JSON lines instead of text."`

	NTP []string `name:"ntp" placeholder:"HOST" help:"Follow these NTP servers beside the system clock, each asked about once a minute."`

	Stamps    bool           `hidden:"" help:"Stamp every answer with the instant and the window of its decision, for drills."`
	SyncPhase *time.Duration `hidden:"" help:"Where in their interval this instance agrees with stores, for drills."`
}

// drilled are the options that drills ask for.
func (c *GatewayCmd) drilled() (opts []gateway.Option) {
	if c.Stamps {
		opts = append(opts, gateway.WithStamps())
	}
	if c.SyncPhase != nil {
		opts = append(opts, gateway.WithSyncPhase(*c.SyncPhase))
	}
	return opts
}

// Run serves until ctx ends. A configuration with a mistake is exit code 1, before
// anything listens.
func (c *GatewayCmd) Run(ctx context.Context, out *Output) error {
	if c.MaxKeys < 1 {
		return usage("gateway: --max-keys is %d; use at least 1", c.MaxKeys)
	}
	load := c.load
	if c.Demo {
		demo, err := serveDemo(ctx)
		if err != nil {
			return err
		}
		load = func() (*config.Config, []config.Finding, error) {
			cfg, findings := config.Parse("demo.yaml", []byte(strings.ReplaceAll(demoConfig, "UPSTREAM", demo)), config.Options{})
			return c.override(cfg), findings, nil
		}
	}
	cfg, findings, err := load()
	if err != nil {
		return err
	}
	printFindings(out.Err, findings)
	if cfg == nil {
		return found()
	}
	if len(cfg.Routes) == 0 {
		return &exitError{code: ExitFinding, err: fmt.Errorf("gateway: %s has no routes, so every request would be answered 404\n  add routes with a uri, limits and an upstream", c.Config)}
	}
	logger := c.logger(out)
	// net/http says some things only there.
	slog.SetDefault(logger)
	clocks, err := watchClocks(ctx, cfg.Clock, c.NTP, logger)
	if err != nil {
		return err
	}
	defer clocks.end()
	seen := &observed{store: records(cfg.Clock, c.MaxKeys), clocks: clocks}
	g, err := gateway.New(cfg, seen.store, logger, append(seen.admin(), c.drilled()...)...)
	seen.gateway = g
	if err != nil {
		return notListening(err)
	}
	out.Logf("gateway on http%s://%s", map[bool]string{true: "s"}[cfg.TLS != nil], g.Addr())
	if a := g.AdminAddr(); a != nil {
		out.Logf("admin on http://%s", a)
	}
	if c.Demo {
		out.Printf(demoText, g.Addr(), g.AdminAddr())
	} else {
		again := loader(load).fixedClock(cfg.Clock, logger)
		go g.Watch(ctx, []string{c.Config}, func() (*config.Config, []config.Finding) {
			cfg, findings, err := again()
			if err != nil {
				findings = append(findings, config.Finding{File: c.Config, Severity: config.Error, Problem: err.Error(), Hint: "restore the file"})
			}
			return cfg, findings
		})
	}
	return g.Run(ctx)
}

func (c *GatewayCmd) load() (*config.Config, []config.Finding, error) {
	cfg, findings, err := config.Load(c.Config, config.Options{IgnoreUnsupported: c.IgnoreUnsupported})
	return c.override(cfg), findings, err
}

func (c *GatewayCmd) override(cfg *config.Config) *config.Config {
	if cfg == nil {
		return nil
	}
	if c.Listen != "" {
		cfg.Listen = c.Listen
	}
	if c.Admin != "" {
		cfg.Admin = c.Admin
	}
	return cfg
}

func (c *GatewayCmd) logger(out *Output) *slog.Logger {
	if c.LogJSON {
		return slog.New(slog.NewJSONHandler(out.Err, nil))
	}
	return slog.New(slog.NewTextHandler(out.Err, nil))
}

//go:embed demo.yaml
var demoConfig string

const demoText = `
Each client address may make 5 requests in any 10 seconds. Try, in another terminal:

  curl -i http://%[1]s/hello
  for i in 1 2 3 4 5 6; do curl -s -o /dev/null -w '%%{http_code}\n' http://%[1]s/hello; done
  curl -s http://%[2]s/limits

The first answers 200 with the RateLimit fields, the second runs into 429, the third shows
what was decided. Ctrl-C ends it.
`

// serveDemo starts the demo upstream on a free loopback port until ctx ends.
func serveDemo(ctx context.Context) (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("gateway: demo upstream: %w", err)
	}
	s := &http.Server{Handler: gateway.Demo()}
	context.AfterFunc(ctx, func() { _ = s.Close() }) // the program ends
	go func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("demo upstream ended", "error", err)
		}
	}()
	return l.Addr().String(), nil
}

// notListening adds what to do about an address that cannot be listened on.
func notListening(err error) error {
	var listen *net.OpError
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w\n  another process may hold the address; choose others with --listen and --admin", err)
	case errors.As(err, &listen):
		return fmt.Errorf("%w\n  name addresses of this machine as HOST:PORT, in the configuration or with --listen and --admin", err)
	}
	return err
}

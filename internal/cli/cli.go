// Package cli is the command escapement: one struct per subcommand, parsed by kong.
package cli

import (
	"context"
	"errors"
	"io"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

const description = "Rate limits that hold when clocks do not, and when instances talk to each other only now and then."

// Commands is the grammar of the command line.
type Commands struct {
	Gateway  GatewayCmd  `cmd:"" help:"Proxy HTTP and enforce the limits of a configuration."`
	Check    CheckCmd    `cmd:"" help:"Find every mistake in a configuration, and say what its limits enforce."`
	Replay   ReplayCmd   `cmd:"" help:"Ask what limits would have done to a file of cases or yesterday's traffic."`
	Simulate SimulateCmd `cmd:"" help:"Let instances share a limit in virtual time, with the faults of a scenario or at random."`
	Plan     PlanCmd     `cmd:"" help:"Compute what it costs that instances share a limit and agree on it now and then."`
	Doctor   DoctorCmd   `cmd:"" help:"Ask whether the time of this host, or of a fleet, is fit to limit by."`
	Drill    DrillCmd    `cmd:"" help:"Do to a limiter what production does to it, and judge what it admits."`
	Version  VersionCmd  `cmd:"" help:"Print the version."`
}

// Main runs the command line and returns the exit code. It ends early, in order, on
// SIGINT and SIGTERM.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// A second signal ends what does not end in order.
	context.AfterFunc(ctx, stop)
	return run(ctx, args, &Output{Out: stdout, Err: stderr})
}

// called is as much of a command as was understood.
func called(c *kong.Context) string {
	words := "escapement"
	for _, p := range c.Path {
		if p.Command != nil {
			words += " " + p.Command.Name
		}
	}
	return words
}

// helped is thrown by kong's exit hook after it has printed help.
type helped struct{ code int }

func run(ctx context.Context, args []string, out *Output) (exit int) {
	defer func() {
		switch h := recover().(type) {
		case nil:
		case helped:
			exit = h.code
		default:
			panic(h)
		}
	}()
	var commands Commands
	parser, err := kong.New(&commands,
		kong.Name("escapement"), kong.Description(description), kong.UsageOnError(),
		kong.Writers(out.Out, out.Err), kong.Exit(func(c int) { panic(helped{c}) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(out))
	if err != nil {
		panic(err) // the grammar itself is wrong, which a test would have shown
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	kctx, err := parser.Parse(joinNegative(args))
	if err != nil {
		out.Logf("escapement: %v", err)
		var pe *kong.ParseError
		if errors.As(err, &pe) {
			out.Logf("  run %s --help for what there is", called(pe.Context))
		}
		return ExitUsage
	}
	err = kctx.Run()
	if err != nil && err.Error() != "" {
		out.Logf("escapement: %v", err)
	}
	return code(err)
}

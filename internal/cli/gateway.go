package cli

import (
	"context"
	"errors"
)

// GatewayCmd is escapement gateway.
type GatewayCmd struct {
	Config            []string `short:"c" name:"config" type:"existingfile" placeholder:"FILE" help:"Configuration: native YAML or JSON, or an APISIX standalone file."`
	IgnoreUnsupported bool     `help:"Leave out what is not supported instead of refusing the file; what was left out is listed."`
	Demo              bool     `help:"Serve a demo upstream with a demo limit instead of a configuration."`
}

// Run serves until ctx ends.
func (c *GatewayCmd) Run(ctx context.Context, out *Output) error {
	return errors.New("gateway: not wired")
}

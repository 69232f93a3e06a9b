// Command escapement: a gateway and tools for rate limits that hold when clocks do not.
package main

import (
	"os"

	"github.com/escapement-io/escapement/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr))
}

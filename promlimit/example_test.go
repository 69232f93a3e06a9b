package promlimit_test

import (
	"context"
	"fmt"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/escapement-io/escapement"
	"github.com/escapement-io/escapement/memstore"
	"github.com/escapement-io/escapement/promlimit"
)

// A program serves the registry with promhttp.HandlerFor.
func Example() {
	limits := promlimit.New()
	registry := prometheus.NewRegistry()
	registry.MustRegister(limits)

	store := memstore.New()
	defer store.Close()
	limiter, err := escapement.New(store, escapement.Limit{Name: "login", Rate: escapement.PerHour(2)}, escapement.WithObserver(limits))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 3 {
		if _, err := limiter.Take(context.Background(), "alice", 1); err != nil {
			fmt.Println(err)
			return
		}
	}
	families, err := registry.Gather()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range families {
		f.Help = nil
		if _, err := expfmt.MetricFamilyToText(os.Stdout, f); err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// # TYPE escapement_limit_admitted_units_total counter
	// escapement_limit_admitted_units_total{limit="login"} 2
	// # TYPE escapement_limit_decisions_total counter
	// escapement_limit_decisions_total{basis="exact",limit="login",verdict="admitted"} 2
	// escapement_limit_decisions_total{basis="exact",limit="login",verdict="refused"} 1
	// escapement_limit_decisions_total{basis="exact",limit="login",verdict="shadow_refused"} 0
}

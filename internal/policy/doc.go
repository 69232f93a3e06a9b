// Package policy tells what a request is limited by: it evaluates variables and
// templates over a request and joins them to keys that cannot collide.
package policy

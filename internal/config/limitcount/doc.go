// Package limitcount reads the configuration of the plugins limit-count and
// limit-count-advanced as Apache APISIX and API7 write it: every option, its range, its
// default, and their own wording of the mistakes that have one.
package limitcount

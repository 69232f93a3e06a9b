// Package config turns configuration files, native ones and APISIX standalone ones, into
// one checked Config. Every problem is reported at once, with its place and its remedy;
// a Config comes out only if there was none.
package config

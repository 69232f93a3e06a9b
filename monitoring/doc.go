// Package monitoring holds the alarms and the dashboard for instances of escapement
// gateway, and checks them: that alarms fire and do not, that each has its page in
// docs/runbooks, and that every metric they ask for exists.
package monitoring

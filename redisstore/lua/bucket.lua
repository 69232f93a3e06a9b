-- token_bucket and gcra: at is the instant that the backlog speaks for, a the credits
-- still to drain. Plan: n p full tick.

local function bucketPlan(v)
  return {n = v[1], p = v[2], full = v[3], tick = v[4], count = v[3] / v[2]}
end

local function grid(p, t) return t - t % p.tick end

-- A product of elapsed ticks above 2^53 is rounded, and exceeds every backlog either way.
local function backlog(p, s, now)
  if s.a == 0 then return max(s.at, grid(p, now)), 0 end
  if now <= s.at then return s.at, s.a end
  local elapsed = floor((now - s.at) / p.tick)
  return s.at + elapsed * p.tick, max(0, s.a - elapsed * p.n)
end

local function drain(p, at, now, credits)
  if credits <= 0 then return 0 end
  local ticks = ceilDiv(credits, p.n)
  if ticks > floor(INSTANT / p.tick) then return math.huge end
  return at - now + ticks * p.tick
end

local function takeBucket(p, s, now, cost, patience)
  if cost > p.count then return false end
  local at, a = backlog(p, s, now)
  local need = cost * p.p
  local short = a - (p.full - need)
  if short > 0 and cost > 0 then
    local wait = drain(p, at, max(now, s.at), short)
    if wait > patience or wait == math.huge or a > MAX - need then return false end
  end
  if cost > 0 then s.at, s.a, s.dirty = at, a + need, true end
  return true
end

local function chargeBucket(p, s, now, units)
  local at, a = backlog(p, s, now)
  local fit = min(units, floor((MAX - a) / p.p))
  if fit > 0 then s.at, s.a, s.dirty = at, a + fit * p.p, true end
end

local function refundBucket(p, s, now, units, from)
  local at, a = backlog(p, s, now)
  local since = max(0, floor((at - grid(p, from)) / p.tick))
  local give = 0
  if units > 0 and units <= floor(MAX / p.p) then give = max(0, units * p.p - since * p.n) end
  give = min(give, a)
  if give > 0 then s.at, s.a, s.dirty = at, a - give, true end
end

-- spareBucket is how many whole units are there now.
local function spareBucket(p, s, now)
  local _, a = backlog(p, s, now)
  return floor(max(0, p.full - a) / p.p)
end

local function usedBucket(p, s, now)
  local _, a = backlog(p, s, now)
  return ceilDiv(a, p.p)
end

reset.b = function(p, s, now) return drain(p, s.at, now, s.a) end

-- fixed_window: at is the start of the window, a the units taken in it. Plan: per count
-- most; of a calendar: count most and the boundaries around the caller's line time, from
-- which the script picks by its own.

local function fixedPlan(v)
  return {per = v[1], count = v[2], most = v[3]}
end

local function calendarPlan(v)
  return {count = v[1], most = v[2], cuts = {v[3], v[4], v[5], v[6]}}
end

local function window(p, t)
  if p.cuts then
    local start
    for _, c in ipairs(p.cuts) do
      if c <= t then start = c end
    end
    return start
  end
  if p.first then return t end
  return t - t % p.per
end

-- finish is the end of the window that starts at start.
local function finish(p, start)
  if not p.cuts then return start + p.per end
  for _, c in ipairs(p.cuts) do
    if c > start then return c end
  end
  return MAX
end

local function current(p, s, now)
  now = max(now, s.at)
  if s.a > 0 and now < finish(p, s.at) then return s.at, s.a end
  return window(p, now), 0
end

local function opened(p, s, now, stamp)
  local from = s.at
  if s.a > 0 then from = finish(p, s.at) end
  if stamp < from or stamp + p.per <= now then return now end
  return stamp
end

local function takeFixed(p, s, now, cost)
  if cost == 0 then return true end
  local start, a = current(p, s, now)
  if cost > p.count or a > p.count - cost then return false end
  s.at, s.a, s.dirty = start, a + cost, true
  return true
end

local function chargeFixed(p, s, now, units, stamp)
  local start, a = current(p, s, now)
  if p.first and a == 0 then start = opened(p, s, now, stamp) end
  local fit = min(units, p.most - a)
  if stamp < start then fit = 0 end
  if fit > 0 then s.at, s.a, s.dirty = start, a + fit, true end
end

local function refundFixed(p, s, now, units, from)
  local start, a = current(p, s, now)
  local give = 0
  if from >= start then give = min(a, units) end
  if give > 0 then s.at, s.a, s.dirty = start, a - give, true end
end

local function spareFixed(p, s, now)
  local _, a = current(p, s, now)
  return max(0, p.count - a)
end

local function usedFixed(p, s, now)
  local _, a = current(p, s, now)
  return a
end

reset.f = function(p, s, now) return finish(p, s.at) - now end

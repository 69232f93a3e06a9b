-- sliding_window: at is the start of the current window, a what was taken in it, b what
-- was taken in the one before. Plan: per tick count most.

local function slidingPlan(v)
  return {per = v[1], tick = v[2], count = v[3], most = v[4]}
end

local function slide(p, s, now)
  if now < s.at + p.per then return s.at, s.a, s.b end
  local start = now - now % p.per
  if start == s.at + p.per then return start, 0, s.a end
  return start, 0, 0
end

local function weighted(p, prev, start, now)
  if prev == 0 then return 0 end
  local w = p.per / p.tick
  return ceilDiv(prev * (w - floor((now - start) / p.tick)), w)
end

local function takeSliding(p, s, now, cost)
  if cost == 0 then return true end
  local start, cur, prev = slide(p, s, now)
  if cost > p.count or cur > p.count - cost or weighted(p, prev, start, max(now, start)) > p.count - cost - cur then
    return false
  end
  s.at, s.a, s.b, s.dirty = start, cur + cost, prev, true
  return true
end

local function chargeSliding(p, s, now, units, stamp)
  local start, cur, prev = slide(p, s, now)
  local fit = 0
  if stamp >= start then
    fit = min(units, p.most - cur)
    cur = cur + fit
  elseif stamp >= start - p.per then
    fit = min(units, p.most - prev)
    prev = prev + fit
  end
  if fit > 0 then s.at, s.a, s.b, s.dirty = start, cur, prev, true end
end

local function refundSliding(p, s, now, units, from)
  local start, cur, prev = slide(p, s, now)
  local give = 0
  if from >= start then
    give = min(cur, units)
    cur = cur - give
  elseif from >= start - p.per then
    give = min(prev, units)
    prev = prev - give
  end
  if give > 0 then s.at, s.a, s.b, s.dirty = start, cur, prev, true end
end

local function spareSliding(p, s, now)
  local start, cur, prev = slide(p, s, now)
  return max(0, p.count - cur - weighted(p, prev, start, max(now, start)))
end

local function usedSliding(p, s, now)
  local start, cur, prev = slide(p, s, now)
  return cur + weighted(p, prev, start, max(now, start))
end

reset.s = function(p, s, now)
  if s.a > 0 then return s.at - now + 2 * p.per end
  if s.b > 0 then return s.at - now + p.per end
  return 0
end

-- One claim put to one state. Every function answers: admitted, and of a rolling window
-- in use, wait, when all is free again, units.

local function take(p, s, now, cost, patience)
  if s.rolls then return extra().take(p, s, now, cost) end
  local k = p.kind
  if k == 'b' then return takeBucket(p, s, now, cost, patience or 0) end
  if k == 'p' then return takePacing(p, s, now, cost, patience or math.huge) end
  if k == 'f' then return takeFixed(p, s, now, cost) end
  if k == 's' then return takeSliding(p, s, now, cost) end
  if k == 'r' then return takeRing(p, s, now, cost) end
  return takeLog(p, s, now, cost)
end

local function look(p, s, now, cost)
  if s.rolls then return extra().look(p, s, now, cost) end
  if p.kind == 'r' then return peekRing(p, s, now, cost) end
  return peekLog(p, s, now, cost)
end

-- peek answers what take would and changes nothing.
local function peek(p, s, now, cost, patience)
  if p.kind == 'r' or p.kind == 'l' or s.rolls then return look(p, s, now, cost) end
  local at, a, b, dirty = s.at, s.a, s.b, s.dirty
  local ok = take(p, s, now, cost, patience)
  s.at, s.a, s.b, s.dirty = at, a, b, dirty
  return ok
end

local function spare(p, s, now)
  local k = p.kind
  if k == 'b' then return spareBucket(p, s, now) end
  if k == 'p' then return sparePacing(p, s, now) end
  if k == 'f' then return spareFixed(p, s, now) end
  if k == 's' and not s.rolls then return spareSliding(p, s, now) end
  local _, inUse = look(p, s, now, 0)
  return max(0, p.count - inUse)
end

local function takeUpTo(p, s, now, most)
  local units = min(most, spare(p, s, now))
  local _, inUse, wait, free = take(p, s, now, units)
  return true, inUse, wait, free, units
end

-- chargeAt is a charge for units spent at stamp; zero means now.
local function chargeAt(p, s, now, units, stamp)
  now = max(now, s.at)
  if stamp == 0 or stamp > now then stamp = now end
  local fit = 0
  if units > 0 then fit = charge(p, s, now, units, stamp) end
  if p.kind ~= 'r' and p.kind ~= 'l' then return true end
  local _, inUse, _, free = look(p, s, now, 0)
  return true, inUse, 0, free, fit
end

-- A receipt of a plan that has been replaced since gives nothing back.
local function refund(p, s, now, units, from)
  local k, given = p.kind, 0
  if s.adopted and not s.dirty then units = 0 end
  if units > 0 then
    if s.rolls then
      given = extra().move(p, s, now, from, -units)
    elseif k == 'b' or k == 'p' then
      refundBucket(p, s, now, units, from)
    elseif k == 'f' then
      refundFixed(p, s, now, units, from)
    elseif k == 's' then
      refundSliding(p, s, now, units, from)
    elseif k == 'r' then
      given = refundRing(p, s, now, units, from)
    else
      given = refundLog(p, s, now, units, from)
    end
  end
  if k ~= 'r' and k ~= 'l' then return true end
  local _, inUse, _, free = look(p, s, now, 0)
  return true, inUse, 0, free, given
end

-- ask puts a claim: t take, w take with patience, u take up to, c charge, g give back,
-- k peek. Cost comes with the mode's own number: patience, stamp, or the receipt's instant.
local function ask(p, s, now, mode, cost, extra)
  if mode == 't' then return take(p, s, now, cost) end
  if mode == 'w' then return take(p, s, now, cost, extra) end
  if mode == 'u' then return takeUpTo(p, s, now, cost) end
  if mode == 'c' then return chargeAt(p, s, now, cost, extra) end
  if mode == 'g' then return refund(p, s, now, cost, extra) end
  return peek(p, s, now, cost)
end

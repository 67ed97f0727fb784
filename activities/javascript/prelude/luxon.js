// Luxon's global build has been evaluated: what n8n gives of it, in the zone of the workflow.
;(({ roots, host }) => {
  const { DateTime, Duration, Interval, Settings, IANAZone } = globalThis.luxon
  delete globalThis.luxon
  const zone = roots.execution?.timezone
  if (zone !== undefined) Settings.defaultZone = zone
  // Luxon asks for the offset with each date: one question instead of a formatted date that is read again.
  const offsets = new Map()
  IANAZone.prototype.offset = function (time) {
    if (!this.isValid || Number.isNaN(time)) return Number.NaN
    // Offsets change at full quarters of an hour only.
    const quarter = Math.floor(time / 900_000)
    const key = `${this.name} ${quarter}`
    let offset = offsets.get(key)
    if (offset === undefined) {
      offset = JSON.parse(host('offset', JSON.stringify([this.name, quarter * 900_000])))
      if (offsets.size > 10_000) offsets.clear()
      offsets.set(key, offset)
    }
    return offset
  }
  Object.assign(globalThis, { DateTime, Duration, Interval })
})($$perdure)

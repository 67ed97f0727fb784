import { type Client, ScheduleClient } from '@temporalio/client'
import { findOffset, listClockChanges } from '../../workflows/cron/zones.ts'

type Service = Client['workflowService']

/** The version of Node's time zone rules as a number that grows: 202603 for 2026c. */
export function readZoneRules(version = process.versions.tz): number {
  const [, year, letter] = /^(\d{4})([a-z])/.exec(version ?? '') ?? []
  return year && letter ? Number(year) * 100 + letter.charCodeAt(0) - 96 : 0
}

/**
 * A time zone as this process knows it, from one instant to another, in the format TZif (RFC 9636). Temporal takes it
 * with a schedule. Without it Temporal asks the rules of its own machine, which may be older or newer than ours: then
 * all that a schedule does could be an hour off.
 */
export function writeZoneData(zone: string, from: number, to: number): Uint8Array {
  const changes = listClockChanges(zone, from, to)
  // The first type is that of the time before all changes, and no change leads to it.
  const offsets = [changes[0]?.before ?? findOffset(zone, from), ...changes.map(({ after }) => after)]
  const names = Buffer.from('LOC\0', 'latin1')
  const header = (times: number, types: number, characters: number) => {
    const counts = Buffer.alloc(24)
    for (const [at, count] of [0, 0, 0, times, types, characters].entries())
      counts.writeUInt32BE(count, at * 4)
    return Buffer.concat([Buffer.from('TZif2', 'latin1'), Buffer.alloc(15), counts])
  }
  const times = Buffer.alloc(changes.length * 8)
  const indexes = Buffer.alloc(changes.length)
  for (const [nth, { at }] of changes.entries()) {
    times.writeBigInt64BE(BigInt(at / 1_000), nth * 8)
    indexes[nth] = nth + 1
  }
  const types = Buffer.alloc(offsets.length * 6)
  for (const [nth, offset] of offsets.entries()) types.writeInt32BE(offset / 1_000, nth * 6)
  // The block of 32-bit times is for readers of the format's first version: it has one type and no change.
  const short = [header(0, 1, names.length), types.subarray(0, 6), names]
  const long = [header(changes.length, offsets.length, names.length), times, indexes, types, names]
  return Buffer.concat([...short, ...long, Buffer.from('\n\n', 'latin1')])
}

/** A client of schedules that sends the data of their time zone with them. The SDK has no option for it. */
export function sendZoneData(client: Client, timezoneData: Uint8Array): ScheduleClient {
  const { connection, options } = client
  const service: Service = connection.workflowService
  type Body = { schedule?: { spec?: object | null } | null }
  const add = <T extends Body>(body: T): T => ({
    ...body,
    schedule: { ...body.schedule, spec: { ...body.schedule?.spec, timezoneData } },
  })
  const adding = Object.create(service, {
    createSchedule: { value: (body: Body) => service.createSchedule(add(body)) },
    updateSchedule: { value: (body: Body) => service.updateSchedule(add(body)) },
  }) as Service
  return new ScheduleClient({
    namespace: options.namespace,
    dataConverter: options.loadedDataConverter,
    connection: Object.create(connection, { workflowService: { value: adding } }) as typeof connection,
  })
}

import { createHash } from 'node:crypto'
import { v4 as uuid } from 'uuid'
import type { Person } from './users.ts'

/**
 * A browser in which people have signed in, as its device cookie says. `marks` has, by user id, a mark of the password
 * that each of them used: a new password makes all devices unknown, including those on which an intruder signed in with
 * the old one.
 */
export type Device = { id: string; marks: Record<string, string> }

/** A device remembers the people who signed in last, so that its cookie stays small. */
const MAX_PEOPLE = 5

/** Whether the person has signed in on the device with the password that they have now. */
export function isKnownTo(person: Person, device: Device | null): device is Device {
  return device !== null && device.marks[person.id] === markOf(person)
}

/** The device after the person has signed in on it. Without one it is new. */
export function rememberPerson(device: Device | null, person: Person): Device {
  const others = Object.entries(device?.marks ?? {}).filter(([id]) => id !== person.id)
  const marks = [[person.id, markOf(person)], ...others].slice(0, MAX_PEOPLE)
  return { id: device?.id ?? uuid(), marks: Object.fromEntries(marks) }
}

// The stored hash has a random salt, so its own hash says nothing about the password.
function markOf({ passwordHash }: Person): string {
  return createHash('sha256').update(passwordHash).digest('base64url').slice(0, 22)
}

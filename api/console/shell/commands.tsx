import { useEffect, useSyncExternalStore } from 'react'
import type { IconName } from '../kit/controls/icon.tsx'

export type Command = {
  id: string
  label: string
  group?: string
  icon?: IconName
  /** Said beside it: a key, or what kind of thing it is. */
  hint?: string
  run: () => void
}

let registered: readonly (readonly Command[])[] = []
const readers = new Set<() => void>()

function change(next: readonly (readonly Command[])[]): void {
  registered = next
  for (const tell of readers) tell()
}

/** The acts of this page, for the command palette. Pass the same array until it changes (`useMemo`). */
export function useCommands(commands: readonly Command[]): void {
  useEffect(() => {
    change([...registered, commands])
    return () => change(registered.filter((one) => one !== commands))
  }, [commands])
}

export function useRegistered(): readonly Command[] {
  const lists = useSyncExternalStore(
    (tell) => {
      readers.add(tell)
      return () => readers.delete(tell)
    },
    () => registered,
  )
  return lists.flat()
}

import { Switch } from './input.tsx'

type OnOffProps = { label: string; on: boolean; mayChange: boolean; onChange: (on: boolean) => void }

/** Whether something is on: a switch for those who may turn it, and a word for the others. */
export function OnOff({ label, on, mayChange, onChange }: OnOffProps) {
  if (!mayChange) return on ? 'Yes' : 'No'
  return <Switch label={label} checked={on} onChange={onChange} />
}

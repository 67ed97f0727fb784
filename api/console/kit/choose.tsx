import { Checkbox } from './controls/input.tsx'

type Chosen = ReadonlySet<string>
type ChooseProps = { chosen: Chosen; onChoose: (chosen: Chosen) => void }

/** Chooses all rows of a page, or none; of a single row there is nothing to gather. */
export function ChooseAll({ ids, chosen, onChoose }: ChooseProps & { ids: readonly string[] }) {
  if (ids.length < 2) return null
  return (
    <div className="choose-all">
      <Checkbox
        checked={ids.every((id) => chosen.has(id))}
        onChange={(on) => onChoose(new Set(on ? ids : []))}
      >
        Choose all {ids.length} on this page
      </Checkbox>
    </div>
  )
}

/** Chooses one row beside those that are chosen. `name` is for screen readers. */
export function ChooseOne({ id, name, chosen, onChoose }: ChooseProps & { id: string; name: string }) {
  const choose = (on: boolean) =>
    onChoose(new Set(on ? [...chosen, id] : [...chosen].filter((one) => one !== id)))
  return (
    <Checkbox checked={chosen.has(id)} onChange={choose}>
      <span className="hidden">Choose {name}</span>
    </Checkbox>
  )
}

import { Dialog } from './dialog.tsx'

type KeysProps = {
  open: boolean
  onClose: () => void
  title: string
  /** Keys that are pressed one after the other or at once, such as `Ctrl K`, and what they do. */
  keys: readonly (readonly [key: string, text: string])[]
}

/** Says what keys do. */
export function KeysDialog({ open, onClose, title, keys }: KeysProps) {
  return (
    <Dialog open={open} onClose={onClose} title={title}>
      <dl className="keys">
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              {key.split(' ').map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

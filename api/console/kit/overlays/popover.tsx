import { Popover as Base } from '@base-ui/react/popover'
import { Tooltip } from '@base-ui/react/tooltip'
import type { ReactElement, ReactNode } from 'react'
import './overlays.css'

/** What a button opens beside itself. `title` names it for screen readers. */
export function Popover({
  trigger,
  title,
  children,
}: {
  trigger: ReactElement
  title: string
  children: ReactNode
}) {
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner className="floating" sideOffset={6} collisionPadding={8}>
          <Base.Popup className="popover" aria-label={title}>
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}

/** A few words when one points at something or focuses it; it must be clear without them. */
export function Tip({ text, children }: { text: ReactNode; children: ReactElement }) {
  return (
    <Tooltip.Root>
      <Tooltip.Trigger render={children} />
      <Tooltip.Portal>
        <Tooltip.Positioner className="floating" sideOffset={6} collisionPadding={8}>
          <Tooltip.Popup className="tip">{text}</Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  )
}

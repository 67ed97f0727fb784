import { Menu as Base } from '@base-ui/react/menu'
import type { ReactElement, ReactNode } from 'react'
import { useLocation } from 'wouter'
import { Icon, type IconName } from '../controls/icon.tsx'
import './overlays.css'

export type MenuItem =
  | {
      label: string
      icon?: IconName
      onClick: () => void
      danger?: boolean
      disabled?: boolean
      end?: ReactNode
    }
  | { label: string; icon?: IconName; href: string; end?: ReactNode }
  | 'line'

/** A menu that a button opens: `<Menu trigger={<Button aria-label="More" icon="more" />} items={[...]} />`. */
export function Menu({ trigger, items }: { trigger: ReactElement; items: MenuItem[] }) {
  const [, go] = useLocation()
  return (
    <Base.Root>
      <Base.Trigger render={trigger} />
      <Base.Portal>
        <Base.Positioner className="floating" sideOffset={4} align="end">
          <Base.Popup className="menu">
            {items.map((item, at) =>
              item === 'line' ? (
                // biome-ignore lint/suspicious/noArrayIndexKey: lines have no names
                <hr key={at} />
              ) : (
                <Base.Item
                  key={item.label}
                  className={'danger' in item && item.danger ? 'menu-item danger' : 'menu-item'}
                  disabled={'disabled' in item ? (item.disabled ?? false) : false}
                  onClick={() => ('href' in item ? go(item.href) : item.onClick())}
                >
                  {item.icon && <Icon name={item.icon} />}
                  {item.label}
                  {item.end && <span className="end">{item.end}</span>}
                </Base.Item>
              ),
            )}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  )
}
